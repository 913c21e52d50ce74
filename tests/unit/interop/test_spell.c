/* Changes of a plan in the words of the software that runs it: exact ones, or none. */
#include <string.h>

#include "check.h"
#include "interop/interop.h"

static const char *const root = ".";
static const dts_profile_paths profiles = {.roots = &root, .count = 1};

static const char text[] =
    "{model: llama-3-8b, cluster: {profile: dgx-h100, nodes: 1}, stack: pytorch-2, "
    "training: {global_batch: 32, micro_batch: 4, sequence_length: 8192, precision: bf16}, "
    "parallelism: {data_parallel: fsdp}}";

static dts_scenario *load(const dts_override *overrides, size_t count) {
    dts_scenario *scenario = NULL;
    dts_diag *diag = dts_diag_new();
    assert_int_equal(dts_scenario_parse(text, strlen(text), "spell.yaml", overrides, count, &profiles, &scenario, diag),
                     DTS_OK);
    dts_diag_free(diag);
    return scenario;
}

static void changes_are_spelled(void **state) {
    (void)state;
    enum { CHANGES = 2 };
    static const struct {
        const char *stack;
        dts_override changes[CHANGES];
        const char *told; /* begins so; NULL: there are no exact words */
    } rows[] = {
        {"pytorch-2",
         {{"stack.allocator.expandable", "true", {0}}},
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
        {"pytorch-2",
         {{"training.recompute", "full", {0}}},
         "accelerate: fsdp_config.fsdp_activation_checkpointing=true"},
        {"pytorch-2", {{"training.recompute", "selective", {0}}}, NULL},
        {"pytorch-2", {{"training.micro_batch", "1", {0}}}, NULL},
        {"huggingface-trainer-2",
         {{"training.recompute", "full", {0}}},
         "Trainer, accelerate: gradient_checkpointing=true"},
        {"huggingface-trainer-2",
         {{"training.recompute", "full", {0}}, {"training.micro_batch", "1", {0}}},
         "Trainer, accelerate: gradient_checkpointing=true, per_device_train_batch_size=1, "
         "gradient_accumulation_steps=4"},
        {"huggingface-trainer-2",
         {{"training.optimizer", "adamw-8bit", {0}}},
         "Trainer, accelerate: optim=adamw_bnb_8bit"},
        {"huggingface-trainer-2", {{"offload.activations", "cpu", {0}}}, NULL},
        {"torchtitan-2025", {{"training.recompute", "full", {0}}}, "torchtitan: --activation_checkpoint.mode full"},
        {"torchtitan-2025",
         {{"parallelism.context", "4", {0}}},
         "torchtitan: --parallelism.data_parallel_shard_degree 2 --parallelism.context_parallel_degree 4"},
        {"torchtitan", {{"parallelism.context", "4", {0}}}, NULL}, /* its flags of 2024 have other names */
        {"torchtitan", {{"parallelism.tensor", "2", {0}}}, NULL},
        {"torchtitan", {{"training.micro_batch", "1", {0}}}, NULL},
        {"megatron-core",
         {{"parallelism.data_parallel", "zero1", {0}}, {"parallelism.tensor", "4", {0}}},
         "Megatron-LM: --tensor-model-parallel-size 4"},
        {"llm-c", {{"training.micro_batch", "1", {0}}}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t count = rows[i].changes[1].key == NULL ? 1 : CHANGES;
        const bool megatron = strcmp(rows[i].stack, "megatron-core") == 0; /* FSDP is none of its own */
        dts_override all[2 + CHANGES] = {{"stack", rows[i].stack, {0}},
                                         {"parallelism.data_parallel", megatron ? "zero1" : "fsdp", {0}}};
        memcpy(all + 2, rows[i].changes, sizeof rows[i].changes);
        dts_scenario *before = load(all, 2), *after = load(all, 2 + count);
        dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
        dts_diag *diag = dts_diag_new();
        const char *told = NULL;
        assert_int_equal(dts_spell_change(before, after, rows[i].changes, count, arena, &told, diag), DTS_OK);
        print_message("%s, %s=%s: %s\n", rows[i].stack, rows[i].changes[0].key, rows[i].changes[0].value,
                      told == NULL ? "no words" : told);
        if (rows[i].told == NULL) {
            assert_null(told);
        } else {
            assert_int_equal(strncmp(told == NULL ? "" : told, rows[i].told, strlen(rows[i].told)), 0);
        }
        dts_diag_free(diag);
        dts_arena_free(arena);
        dts_scenario_free(after);
        dts_scenario_free(before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(changes_are_spelled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
