/* Parameter counts and FLOPs against published numbers and formulas, worked out here by hand, not by the library. */
#include "shapes.h"

static void test_gpt2(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    model.layers = 12;
    model.hidden = 768;
    model.heads = 12;
    model.vocab = 50257;
    model.max_positions = 1024;
    assert_close(dts_model_parameters(&model), 124439808, 0, 0);
    assert_close(dts_model_part_parameters(&model, DTS_PART_EMBEDDING), (50257 + 1024) * 768, 0, 0);
    assert_close(dts_model_part_parameters(&model, DTS_PART_LAYER), 12 * 768 * 768 + 13 * 768, 0, 0);
    assert_close(dts_model_part_parameters(&model, DTS_PART_HEAD), 2 * 768, 0, 0);
    model.tied_embeddings = false;
    assert_close(dts_model_part_parameters(&model, DTS_PART_HEAD), 2 * 768 + 50257 * 768, 0, 0);
}

/* Hugging Face BertModel (encoder and pooler): 109,482,240; its pre-training heads add the transform, its norm, the
 * decoder's bias and the next-sentence classifier. */
static void test_bert(void **state) {
    (void)state;
    dts_model model = bert_base();
    double pooler = 768 * 768 + 768, transform = 768 * 768 + 768 + 2 * 768, decoder_bias = 30522, next = 2 * 768 + 2;
    assert_close(dts_model_part_parameters(&model, DTS_PART_EMBEDDING) +
                     12 * dts_model_part_parameters(&model, DTS_PART_LAYER) + pooler,
                 109482240, 0, 0);
    assert_close(dts_model_parameters(&model), 109482240 + transform + decoder_bias + next, 0, 0);
    model.head = DTS_HEAD_CLASSIFICATION;
    model.labels = 3;
    assert_close(dts_model_parameters(&model), 109482240 + 3 * 768 + 3, 0, 0);
    model.head = DTS_HEAD_LANGUAGE_MODEL;
    model.labels = 2;
    model.hidden = 1024;
    model.layers = 24;
    model.heads = 16;
    model.lm_transform = false;
    next = 2 * 1024 + 2;
    assert_close(dts_model_parameters(&model), 335141888 + next, 0, 0);
}

static void test_llama(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    assert_close(dts_model_parameters(&model), 70553706496, 0, 0);
    model.vocab = 32000;
    assert_close(dts_model_parameters(&model), 68976648192, 0, 0);
    model.layers = 32;
    model.hidden = 4096;
    model.heads = 32;
    model.kv_heads = 0;
    model.ffn_hidden = 11008;
    assert_close(dts_model_parameters(&model), 6738415616, 0, 0);
    assert_int_equal(dts_model_kv_heads(&model), 32);
    assert_int_equal(dts_model_head_dim(&model), 128);
}

/* Narayanan et al. 2021, section 5.1: P = 12lh²(1 + 13/(12h) + (V + s)/(12lh)), without the final norm. */
static void test_narayanan_parameters(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    double l = 96, h = 12288, v = 51200, s = 2048;
    assert_close(dts_model_parameters(&model), 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h)) + 2 * h,
                 1e-14, 0);
}

/* A head_dim of its own widens the products of attention only. */
static void test_head_dim(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    model.head_dim = 256;
    double h = 8192, qo = 2 * h * 64 * 256, kv = 2 * h * 8 * 256, ffn = 3 * h * 28672, norms = 2 * h;
    assert_close(dts_model_part_parameters(&model, DTS_PART_LAYER), qo + kv + ffn + norms, 0, 0);
}

/* Narayanan et al. 2021: F = 96Bslh²(1 + s/(6h) + V/(16lh)) counts layers four times (forward, backward twice,
 * recomputation) and logits three times. */
static void test_narayanan_flops(void **state) {
    (void)state;
    dts_model model = gpt_175b();
    double l = 96, h = 12288, v = 51200, s = 2048, logits = 2 * s * h * v;
    double forward = dts_model_forward_flops(&model, 2048, 0);
    assert_close(4 * (forward - logits) + 3 * logits, 96 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h)), 1e-14,
                 0);
}

/* Grouped queries and the gate, by hand: per position 2·(weights of the products) + 4·S·heads·d. */
static void test_llama_flops(void **state) {
    (void)state;
    dts_model model = llama_3_70b();
    double s = 8192, h = 8192, kv = 1024, f = 28672, v = 128256;
    double layer = 2 * s * (2 * h * h + 2 * h * kv + 3 * h * f) + 4 * s * s * h;
    assert_close(dts_model_forward_flops(&model, 8192, 0), 80 * layer + 2 * s * h * v, 1e-14, 0);
}

/* Masked language modelling may compute the logits of a share of the positions only; the pooler works on one. */
static void test_bert_flops(void **state) {
    (void)state;
    dts_model model = bert_base();
    double s = 512, h = 768, v = 30522, layer = 24 * s * h * h + 4 * s * s * h;
    double pooler = 2 * h * h + 2 * h * 2;
    assert_close(dts_model_forward_flops(&model, 512, 0), 12 * layer + pooler + 2 * s * h * h + 2 * s * h * v, 1e-14,
                 0);
    model.predicted_share = 80.0 / 512;
    assert_close(dts_model_forward_flops(&model, 512, 0), 12 * layer + pooler + 2 * 80 * h * h + 2 * 80 * h * v, 1e-14,
                 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_bert),
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_head_dim),
        cmocka_unit_test(test_narayanan_parameters),
        cmocka_unit_test(test_llama_flops),
        cmocka_unit_test(test_narayanan_flops),
        cmocka_unit_test(test_bert_flops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
