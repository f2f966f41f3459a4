/* main.c - kafkad-sim: runs seeds.
 *
 * A run: a set-up that the seed chooses, work and faults for so many simulated seconds (or steps),
 * then all is mended, and the cluster must become whole by itself (liveness). Each of several runs
 * is a process of its own, since a run leaves its memory; what a child found is its exit status.
 *
 * FILE OF SEEDS  a line each: the seed, then why it is kept; '#' begins a comment. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"
#include "sim_run.h"

static const char usage[] =
    "kafkad-sim: whole clusters in one process, from one seed; ends with 1 when a run failed.\n"
    "Takes at least one of --seed, --file and --fresh.\n"
    "  --seed N        one run; the same seed is the same run (see its trace)\n"
    "  --steps M       work and faults for M steps instead of --seconds\n"
    "  --seconds S     simulated seconds of work and faults (120)\n"
    "  --verbose       log lines of the brokers, and what the simulator does\n"
    "  --requests      the same, and what hosts ask each other\n"
    "  --fresh S       new seeds for S seconds of real time\n"
    "  --first N       of the new seeds; else taken from the clock\n"
    "  --count N       no more than so many new seeds\n"
    "  --file F        all seeds in the file\n"
    "  --twice         each run twice; both must be the same\n";

struct totals {
    uint64_t runs, failed;
    struct sim_summary sum;
};

/* Out of the simulated world: of the machine. */
int __real_clock_gettime(clockid_t id, struct timespec *t);

static double real_seconds(void)
{
    struct timespec t;
    __real_clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In a child. False: it failed. */
static bool run_apart(const struct sim_run *r, struct sim_summary *out)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0)
        exit(2);
    pid_t child = fork();
    if (child < 0)
        exit(2);
    if (child == 0) {
        struct sim_summary s = sim_run(r);
        ssize_t n = write(ends[1], &s, sizeof(s));
        _exit(n == (ssize_t)sizeof(s) ? 0 : 2);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], out, sizeof(*out));
    close(ends[0]);
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    bool good = n == (ssize_t)sizeof(*out) && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFSIGNALED(status))
        fprintf(stderr, "seed %llu: ended by signal %d\n", (unsigned long long)r->seed,
                WTERMSIG(status));
    return good;
}

static void run_one(struct sim_run *r, bool twice, struct totals *t)
{
    struct sim_summary s = {0}, again;
    bool good = run_apart(r, &s);
    t->runs++;
    if (good && twice) {
        good = run_apart(r, &again);
        if (good && (again.trace != s.trace || again.steps != s.steps)) {
            fprintf(stderr, "seed %llu does not replay: trace %016llx, then %016llx\n",
                    (unsigned long long)r->seed, (unsigned long long)s.trace,
                    (unsigned long long)again.trace);
            good = false;
        }
    }
    if (!good) {
        t->failed++;
        printf("FAILED: kafkad-sim --seed %llu\n", (unsigned long long)r->seed);
        return;
    }
    sim_summary_print(r->seed, &s);
    sim_summary_add(&t->sum, &s);
}

static void run_file(const char *path, struct sim_run *r, bool twice, struct totals *t)
{
    char line[512];
    FILE *f = fopen(path, "r");
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    while (fgets(line, sizeof(line), f)) {
        char *end;
        r->seed = strtoull(line, &end, 10);
        if (end != line)
            run_one(r, twice, t);
    }
    fclose(f);
}

static void run_fresh(double seconds, uint64_t first, uint64_t count, struct sim_run *r, bool twice,
                      struct totals *t)
{
    double end = real_seconds() + seconds;
    for (r->seed = first; real_seconds() < end && r->seed - first < count; r->seed++)
        run_one(r, twice, t);
}

static int report(const struct totals *t, double began)
{
    double real = real_seconds() - began;
    printf(
        "%llu seeds, %llu failed; %.2f simulated hours, %.0f simulated seconds a real one; "
        "%llu faults, %llu steps, %llu acknowledged, %llu consumed; transactions: %llu committed, "
        "%llu aborted, %llu ended by others, %llu in doubt, %llu zombies\n",
        (unsigned long long)t->runs, (unsigned long long)t->failed, (double)t->sum.seconds / 3600,
        (double)t->sum.seconds / (real > 0 ? real : 1), (unsigned long long)t->sum.faults,
        (unsigned long long)t->sum.steps, (unsigned long long)t->sum.work.acked,
        (unsigned long long)t->sum.work.consumed, (unsigned long long)t->sum.work.txn_committed,
        (unsigned long long)t->sum.work.txn_aborted, (unsigned long long)t->sum.work.txn_fenced,
        (unsigned long long)t->sum.work.txn_doubtful, (unsigned long long)t->sum.work.zombies);
    return t->failed ? 1 : 0;
}

struct asked {
    struct sim_run run;
    double fresh; /* seconds */
    uint64_t first, count;
    const char *file;
    bool twice, one;
};

enum choice {
    SEED = 1,
    STEPS,
    SECONDS,
    VERBOSE,
    FRESH,
    FIRST,
    COUNT,
    FROM_FILE,
    TWICE,
    REQUESTS,
    HELP
};

static void misused(const char *what, const char *value)
{
    fprintf(stderr, "kafkad-sim: %s%s%s\n", what, value ? ": " : "", value ? value : "");
    fputs(usage, stderr);
    exit(2);
}

static uint64_t number(const char *text)
{
    char *end;
    errno = 0;
    uint64_t n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        misused("not a whole number", text);
    return n;
}

static void take_option(enum choice o, const char *value, struct asked *a)
{
    uint64_t n = value && o != FROM_FILE ? number(value) : 0;
    switch (o) {
    case SEED:
        a->run.seed = n;
        a->one = true;
        break;
    case STEPS:
        a->run.steps = n;
        break;
    case SECONDS:
        a->run.seconds = (int64_t)n;
        break;
    case REQUESTS:
        a->run.requests = true; /* fall through */
    case VERBOSE:
        a->run.verbose = true;
        break;
    case FRESH:
        a->fresh = (double)n;
        break;
    case FIRST:
        a->first = n;
        break;
    case COUNT:
        a->count = n;
        break;
    case FROM_FILE:
        a->file = value;
        break;
    case TWICE:
        a->twice = true;
        break;
    default:
        fputs(usage, o == HELP ? stdout : stderr);
        exit(o == HELP ? 0 : 2);
    }
}

static void take_options(int argc, char **argv, struct asked *a)
{
    static const struct option options[] = {
        {"seed", required_argument, 0, SEED},       {"steps", required_argument, 0, STEPS},
        {"seconds", required_argument, 0, SECONDS}, {"verbose", no_argument, 0, VERBOSE},
        {"fresh", required_argument, 0, FRESH},     {"first", required_argument, 0, FIRST},
        {"count", required_argument, 0, COUNT},     {"file", required_argument, 0, FROM_FILE},
        {"twice", no_argument, 0, TWICE},           {"help", no_argument, 0, HELP},
        {"requests", no_argument, 0, REQUESTS},     {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        take_option((enum choice)c, optarg, a);
    if (optind < argc)
        misused("no such argument", argv[optind]);
    if (!a->one && !a->file && a->fresh <= 0)
        misused("nothing to run", NULL);
}

int main(int argc, char **argv)
{
    struct asked a = {.run = {.seed = 1, .seconds = 120},
                      .first = (uint64_t)time(NULL) * 1000,
                      .count = UINT64_MAX};
    struct totals t = {0};
    double began = real_seconds();
    take_options(argc, argv, &a);
    if (a.one && !a.twice) { /* in this process: a debugger sees it */
        struct sim_summary s = sim_run(&a.run);
        sim_summary_print(a.run.seed, &s);
        return 0;
    }
    if (a.one)
        run_one(&a.run, a.twice, &t);
    if (a.file)
        run_file(a.file, &a.run, a.twice, &t);
    if (a.fresh > 0)
        run_fresh(a.fresh, a.first, a.count, &a.run, a.twice, &t);
    return report(&t, began);
}
