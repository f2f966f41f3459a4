/* sim_tenure.h - who has a partition of a group, and since when: for members of both protocols, by
 * what they were told and what they have said (epochs of a group that changes its protocol begin
 * anew, so what counts is the order of events).
 *
 * TENURE  begins when the coordinator in force gives a member a partition, and ends when it says,
 *         or is about to, that it has let go (or would not: it has crashed, or is fenced). It is
 *         sure for as long as no coordinator may have taken it for gone: a member that is silent,
 *         or does not give up what it shall, loses its own without a word.
 *
 *   G5 no partition is given to a member while it is surely another's
 *   G6 a commit under an epoch that is over is not taken: one sent after the partition was given to
 *      another, or after its member was told a later epoch
 *   G7 who is given a partition finds what was committed before, or more; in the end, too
 *
 * DOUBT   a commit without an answer may take effect, behind later ones, until its tenure is over
 *         or a commit of a later epoch is taken. */
#ifndef TESTS_SIM_SIM_TENURE_H
#define TESTS_SIM_SIM_TENURE_H

#include "sim.h"

struct tenures;
struct tenures *tenures_new(const char *group);

/* The member has been given the partition; sure until then (ns). Names the tenure. */
uint64_t tenure_begin(struct tenures *t, int member, int32_t partition, int64_t sure_until);
/* It is still its own, by the coordinator in force. */
void tenure_goes_on(struct tenures *t, int member, int32_t partition, int64_t sure_until);
/* It does not use it any more; nothing if it had not. */
void tenure_end(struct tenures *t, int member, int32_t partition);

/* The coordinator in force gave this as committed to who has just been given it; -1: nothing. */
void tenure_found(struct tenures *t, int32_t partition, int64_t offset);
/* The latest tenure: to be taken when a commit is sent. */
uint64_t tenure_latest(const struct tenures *t, int32_t partition);
struct tenure_commit {
    int member;
    int32_t partition, epoch;
    int64_t offset;
    uint64_t tenure, latest_when_sent;
    bool over; /* a later epoch had been told */
};
void tenure_committed(struct tenures *t, const struct tenure_commit *c);
void tenure_doubtful(struct tenures *t, const struct tenure_commit *c);
/* At the end: nobody has it twice. */
void tenure_judge(const struct tenures *t, int32_t partition, int64_t committed);

#endif
