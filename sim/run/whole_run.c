/* From one iteration to the whole run.
 *
 *   job's MTBF        cluster.mtbf / GPUs                        failures of GPUs are independent; any one stops the
 * job checkpoint        trained parameters · (bytes as stored + bytes of the optimizer's states)      the simulated
 * memory written in        checkpoint / min(nodes that write · cluster.checkpoint_bandwidth, cluster.storage_bandwidth)
 *   asynchronously    training waits only for the copy to host memory: a GPU's share / its host link
 *   restart           cluster.restart_time + reading the checkpoint, as fast as it was written
 * Nodes write what they hold that no other node writes: with sharded states all do, else those of the first replica.
 * The interval is a whole number of iterations, and no shorter than an asynchronous checkpoint takes to write. */
#include "run/whole_run.h"

#include <math.h>
#include <stdlib.h>

#include "run/goodput.h"

/* Ranks of a stage that hold different parts of the optimizer's states. */
static int64_t different_ranks(const dts_plan *plan) {
    return dts_plan_shards_optimizer(plan) ? plan->shards : 1;
}

/* Nodes with at least one GPU that writes; 0: out of memory. */
static int64_t writing_nodes(const dts_plan *plan) {
    int64_t nodes = (plan->gpus + plan->gpus_per_node - 1) / plan->gpus_per_node;
    int64_t rows = different_ranks(plan) * plan->tensor;
    if (rows * plan->pipeline >= plan->gpus) {
        return nodes;
    }
    bool *writes = calloc((size_t)nodes, sizeof *writes);
    int64_t count = 0;
    for (int64_t row = 0; writes != NULL && row < rows; row++) {
        for (int64_t p = 0; p < plan->pipeline; p++) {
            int64_t node = dts_plan_gpu(plan, row, p) / plan->gpus_per_node;
            count += !writes[node];
            writes[node] = true;
        }
    }
    free(writes);
    return count;
}

/* Iterations between two checkpoints; INFINITY: none are written. */
static double choose_steps(const dts_training *training, const dts_failing_run *run, double iteration_s) {
    double interval_s = training->checkpoint_interval_s > 0 ? training->checkpoint_interval_s : dts_best_interval(run);
    return fmax(1, round(fmax(interval_s, run->commit_s) / iteration_s));
}

/* Time and money for what is asked for. */
static void extend_to_tokens(double tokens, dts_result *result) {
    dts_whole_run *w = &result->whole_run;
    w->tokens = tokens;
    w->ideal_s = fmax(tokens / result->tokens_per_s, result->iteration_time_s); /* fewer tokens are an iteration, too */
    w->expected_s = w->ideal_s / w->goodput;
    w->failures = w->mtbf_s > 0 ? w->expected_s / w->mtbf_s : 0;
    w->usd = result->fits ? w->expected_s / 3600 * result->price_usd_per_hour : 0;
}

dts_status dts_measure_whole_run(const dts_scenario_values *values, const dts_plan *plan, dts_result *result) {
    const dts_cluster *cluster = &values->cluster;
    const dts_training *training = &values->training;
    int64_t nodes = writing_nodes(plan);
    if (nodes == 0) {
        return DTS_NOMEM;
    }
    double checkpoint_B = result->trainable_parameters * (plan->storage.parameter_B + plan->storage.optimizer_B);
    double rate_Bps = (double)nodes * cluster->checkpoint_Bps;
    rate_Bps = cluster->storage_Bps > 0 ? fmin(rate_Bps, cluster->storage_Bps) : rate_Bps;
    double write_s = checkpoint_B / rate_Bps;
    double share_B = checkpoint_B / (double)(different_ranks(plan) * plan->tensor * plan->pipeline);
    bool asynchronous = training->checkpoint_asynchronous;
    const bool infers = dts_plan_infers(plan); /* it has nothing to save, and a failure loses a batch at most */
    const dts_failing_run run = {
        .mtbf_s = cluster->mtbf_s > 0 && !infers ? cluster->mtbf_s / (double)plan->gpus : INFINITY,
        .checkpoint_s = asynchronous ? fmin(write_s, share_B / cluster->gpu.pcie_bandwidth_Bps) : write_s,
        .commit_s = asynchronous ? write_s : 0,
        .restart_s = cluster->restart_s + write_s,
    };
    double steps = choose_steps(training, &run, result->iteration_time_s);
    bool none = infers || isinf(steps);
    double interval_s = none ? 0 : steps * result->iteration_time_s;
    dts_goodput g = none ? (dts_goodput){.training = 1} : dts_goodput_of(&run, interval_s);
    result->whole_run = (dts_whole_run){.goodput = g.training,
                                        .shares = {g.training, g.checkpoints, g.lost_work, g.restarts},
                                        .mtbf_s = isinf(run.mtbf_s) ? 0 : run.mtbf_s,
                                        .checkpoint_B = checkpoint_B,
                                        .checkpoint_s = run.checkpoint_s,
                                        .write_s = write_s,
                                        .interval_s = interval_s,
                                        .interval_iterations = none ? 0 : steps,
                                        .restart_s = run.restart_s};
    if (training->tokens > 0) {
        extend_to_tokens(training->tokens, result);
    }
    return DTS_OK;
}
