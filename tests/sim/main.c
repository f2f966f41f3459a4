#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim.h"
#include "sim_broker.h"
#include "sim_zk.h"
#include "sim_net.h"
int main(int argc, char **argv)
{
    struct sim_options o = {.seed = (uint64_t)atoi(argv[1]), .verbose = argc > 2, .preempt = 0.01};
    sim_init(&o);
    sim_zk_init();
    sim_cluster.brokers = 3;
    sim_cluster.dirs = 1;
    for (int i = 1; i <= 3; i++)
        sim_broker_start(sim_host(i));
    while (sim_now() < 1060 * SIM_S && sim_step())
        ;
    printf("steps %lu frames %lu trace %lx\n", sim_steps(), sim_net_frames(), sim_trace_hash());
}
