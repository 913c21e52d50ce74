/* What BERT is trained for where the model leaves it open: the stack says. */
#include <string.h>

#include "check.h"
#include "scenario/scenario.h"

static int head_of(const char *stack, const char *model, const char *length) {
    char text[512];
    snprintf(text, sizeof text,
             "model: %s\ncluster: v100-16gb-single\nstack: %s\n"
             "training: {sequence_length: %s, micro_batch: 1, global_batch: 1, precision: fp32, optimizer: adamw}\n",
             model, stack, length);
    const char *roots[] = {"."};
    dts_profile_paths profiles = {.roots = roots, .count = 1};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    assert_int_equal(dts_scenario_parse(text, strlen(text), "test", NULL, 0, &profiles, &scenario, diag), DTS_OK);
    int head = dts_scenario_get(scenario)->model.head;
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    return head;
}

static void fine_tuning_stack_classifies(void **state) {
    (void)state;
    assert_int_equal(head_of("huggingface-trainer", "bert-large", "512"), DTS_HEAD_CLASSIFICATION);
    assert_int_equal(head_of("huggingface-trainer", "{profile: bert-large, head: language-model}", "512"),
                     DTS_HEAD_LANGUAGE_MODEL);
    assert_int_equal(head_of("huggingface-trainer", "gpt2", "512"), DTS_HEAD_LANGUAGE_MODEL);
    assert_int_equal(head_of("pytorch-1.11", "bert-large", "512"), DTS_HEAD_LANGUAGE_MODEL);
}

static void lengths_of_the_phases_pretrain(void **state) {
    (void)state;
    assert_int_equal(head_of("nvidia-bert", "bert-large", "128"), DTS_HEAD_LANGUAGE_MODEL);
    assert_int_equal(head_of("nvidia-bert", "bert-large", "512"), DTS_HEAD_LANGUAGE_MODEL);
    assert_int_equal(head_of("nvidia-bert", "bert-large", "384"), DTS_HEAD_CLASSIFICATION);
    assert_int_equal(head_of("nvidia-bert", "{profile: bert-large, head: classification}", "512"),
                     DTS_HEAD_CLASSIFICATION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fine_tuning_stack_classifies),
        cmocka_unit_test(lengths_of_the_phases_pretrain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
