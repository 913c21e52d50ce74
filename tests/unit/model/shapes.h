/* Models and executions that several tests of model/ use. */
#ifndef DTS_TESTS_MODEL_SHAPES_H
#define DTS_TESTS_MODEL_SHAPES_H

#include "check.h"
#include "model/model.h"

/* GPT-3 175B as Korthikanti et al. 2022 train it: vocabulary 51200, 2048 positions. */
static inline dts_model gpt_175b(void) {
    return (dts_model){.name = "gpt",
                       .architecture = DTS_ARCH_GPT,
                       .layers = 96,
                       .hidden = 12288,
                       .heads = 96,
                       .vocab = 51200,
                       .max_positions = 2048,
                       .bias = true,
                       .qkv_bias = true,
                       .dropout = true,
                       .tied_embeddings = true,
                       .causal = true,
                       .labels = 2,
                       .predicted_share = 1};
}

static inline dts_model bert_base(void) {
    return (dts_model){.name = "bert",
                       .architecture = DTS_ARCH_BERT,
                       .layers = 12,
                       .hidden = 768,
                       .heads = 12,
                       .vocab = 30522,
                       .max_positions = 512,
                       .token_types = 2,
                       .bias = true,
                       .qkv_bias = true,
                       .dropout = true,
                       .tied_embeddings = true,
                       .pooler = true,
                       .lm_transform = true,
                       .labels = 2,
                       .predicted_share = 1};
}

static inline dts_model llama_3_70b(void) {
    return (dts_model){.name = "llama",
                       .architecture = DTS_ARCH_LLAMA,
                       .layers = 80,
                       .hidden = 8192,
                       .heads = 64,
                       .kv_heads = 8,
                       .ffn_hidden = 28672,
                       .vocab = 128256,
                       .rotary = true,
                       .gated_ffn = true,
                       .activation_function = DTS_SILU,
                       .rms_norm = true,
                       .causal = true,
                       .labels = 2,
                       .predicted_share = 1};
}

/* Pure fp16, nothing fused, dropout with one-byte masks. */
static inline dts_execution plain_fp16(int64_t micro_batch, int64_t sequence_length) {
    return (dts_execution){.micro_batch = micro_batch,
                           .sequence_length = sequence_length,
                           .tensor = 1,
                           .context = 1,
                           .expert = 1,
                           .expert_tensor = 1,
                           .activation = DTS_FP16,
                           .weight = DTS_FP16,
                           .dropout = true,
                           .mask_B = 1};
}

static inline dts_operators operators_of(const dts_model *model, dts_part part, const dts_execution *execution,
                                         dts_arena *arena) {
    dts_operators operators = {0};
    dts_diag *diag = dts_diag_new();
    dts_status status = dts_model_operators(model, part, execution, arena, &operators, diag);
    if (status != DTS_OK) {
        print_error("%s\n", dts_diag_get(diag, 0)->text);
    }
    assert_int_equal(status, DTS_OK);
    dts_diag_free(diag);
    return operators;
}

static inline const dts_operator *find(dts_operators operators, const char *name) {
    for (size_t i = 0; i < operators.count; i++) {
        if (strcmp(operators.items[i].name, name) == 0) {
            return &operators.items[i];
        }
    }
    return NULL;
}

/* Sum of the saved bytes, of all operators or of those that selective recomputation keeps. */
static inline double saved_B(dts_operators operators, bool selective) {
    double sum = 0;
    for (size_t i = 0; i < operators.count; i++) {
        if (!selective || !operators.items[i].recomputed_selectively) {
            sum += operators.items[i].saved_B;
        }
    }
    return sum;
}

#endif
