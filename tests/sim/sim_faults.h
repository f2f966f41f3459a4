/* sim_faults.h - what goes wrong: which kinds, and how often, the seed decides for each run, so
 * that some runs have much of one kind and nothing of another. */
#ifndef TESTS_SIM_SIM_FAULTS_H
#define TESTS_SIM_SIM_FAULTS_H

#include "sim.h"

void sim_faults_begin(void);
/* No more of them; all is mended: cuts, power, pauses, disks, weather. */
void sim_faults_end(void);
uint64_t sim_faults_count(void);
/* "kills 3, cuts 2, ...". Static memory. */
const char *sim_faults_text(void);

#endif
