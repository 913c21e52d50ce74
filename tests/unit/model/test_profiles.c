/* Every file of models/ binds, and counts as many parameters as were published. */
#include <stdlib.h>

#include "config/schema.h"
#include "shapes.h"

/* A scenario's reference to a model. */
typedef struct job {
    dts_model model;
} job;

static const dts_field job_fields[] = {{.key = "model",
                                        .type = DTS_FIELD_PROFILE,
                                        .offset = offsetof(job, model),
                                        .sub = &dts_model_schema,
                                        .profile_folder = "models",
                                        .required = true}};
static const dts_schema job_schema = {
    .name = "job", .fields = job_fields, .field_count = 1, .struct_size = sizeof(job)};

typedef struct fixture {
    dts_diag *diag;
    dts_arena *arena;
    dts_document *document;
    dts_binder binder;
    const char *roots[1];
} fixture;

/* model: what would stand behind `model:` in a scenario. */
static void setup(fixture *f, const char *model) {
    char text[512];
    (void)snprintf(text, sizeof text, "model: %s\n", model);
    *f = (fixture){.diag = dts_diag_new(), .arena = dts_arena_new(DTS_ARENA_UNLIMITED), .roots = {"."}};
    assert_int_equal(dts_document_parse(text, strlen(text), "test.yaml", NULL, &f->document, f->diag), DTS_OK);
    f->binder = (dts_binder){
        .arena = f->arena, .document = f->document, .profiles = {.roots = f->roots, .count = 1}, .diag = f->diag};
}

static void teardown(fixture *f) {
    dts_document_free(f->document);
    dts_arena_free(f->arena);
    dts_diag_free(f->diag);
}

static dts_status bind(fixture *f, dts_model *model) {
    job bound = {0};
    dts_status status = dts_bind(&f->binder, &job_schema, dts_document_root(f->document), "", &bound);
    *model = bound.model;
    return status;
}

static void print_messages(const fixture *f) {
    dts_text text = {0};
    dts_diag_render(f->diag, false, &text);
    print_error("%s", dts_text_string(&text));
    dts_text_free(&text);
}

static dts_model bind_text(const char *text) {
    fixture f;
    setup(&f, text);
    dts_model model = {0};
    if (bind(&f, &model) != DTS_OK) {
        print_messages(&f);
        fail();
    }
    model.name = model.description = NULL;
    teardown(&f);
    return model;
}

/* The generic ones take their dimensions by override, as tables of measurements give them. */
static bool is_generic(const char *name) {
    const char *const generic[] = {"gpt", "bert", "llama", "mingpt", "llama-moe", "gpt-moe"};
    for (size_t i = 0; i < sizeof generic / sizeof generic[0]; i++) {
        if (strcmp(name, generic[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void check_profile(const char *name) {
    fixture f;
    setup(&f, name);
    dts_model model = {0};
    if (bind(&f, &model) != DTS_OK) {
        print_messages(&f);
        fail_msg("models/%s.yaml does not bind", name);
    }
    assert_string_equal(model.name, name);
    assert_non_null(model.description);
    double count = dts_model_parameters(&model);
    if (model.expected_parameters > 0 &&
        fabs(count - model.expected_parameters) > model.expected_tolerance * model.expected_parameters) {
        print_error("%s has %.0f parameters, published are %.0f (within %g)\n", name, count, model.expected_parameters,
                    model.expected_tolerance);
        fail();
    }
    if (model.expected_active_parameters > 0) { /* published with two digits, embeddings counted or not */
        assert_close(dts_model_active_parameters(&model), model.expected_active_parameters, 0.035, 0);
    }
    teardown(&f);
}

static void test_folder(void **state) {
    (void)state;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_diag *diag = dts_diag_new();
    const char *const roots[] = {"."};
    const dts_profile_paths paths = {.roots = roots, .count = 1};
    const char **names = NULL;
    size_t count = 0, checked = 0;
    assert_int_equal(dts_profile_list(&paths, "models", arena, &names, &count, diag), DTS_OK);
    for (size_t i = 0; i < count; i++) {
        if (!is_generic(names[i])) {
            check_profile(names[i]);
            checked++;
        }
    }
    assert_true(checked >= 68);
    dts_diag_free(diag);
    dts_arena_free(arena);
}

/* Counts that are known to the last parameter; the files must say so, without tolerance. */
static void test_exact(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double count;
    } known[] = {
        {"gpt2", 124439808},
        {"gpt2-medium", 354823168},
        {"gpt2-large", 774030080},
        {"gpt2-xl", 1557611200},
        {"bert-base", 110106428},
        {"bert-large", 336226108},
        {"llama-2-7b", 6738415616},
        {"llama-2-13b", 13015864320},
        {"llama-2-70b", 68976648192},
        {"llama-3-8b", 8030261248},
        {"llama-3-70b", 70553706496},
        {"llama-3-405b", 405853388800},
        {"gpt3-175b", 174604259328},
        {"mixtral-8x7b", 46702792704},
        {"deepseek-v2", 235741434880},
        {"deepseek-v2-lite", 15706484224},
        {"qwen3-30b-a3b", 30532122624},
        {"qwen3-235b-a22b", 235093634560},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        dts_model model = bind_text(known[i].name);
        assert_close(dts_model_parameters(&model), known[i].count, 0, 0);
    }
}

/* Seed study: "125M" is GPT-3's count with a tied output, "162M" counts minGPT's own output projection. */
static void test_mingpt_names(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double name, count;
    } sizes[] = {
        {"mingpt-small", 125e6, 162.05e6}, {"mingpt-medium", 350e6, 404.99e6}, {"mingpt-large", 760e6, 833.95e6},
        {"mingpt-xl", 1.3e9, 1.4344e9},    {"mingpt-2.7b", 2.7e9, 2.7743e9},   {"mingpt-6.7b", 6.7e9, 6.8548e9},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        dts_model model = bind_text(sizes[i].text);
        double count = dts_model_parameters(&model), output = (double)(model.vocab * model.hidden);
        assert_close(count, sizes[i].count, 1e-3, 0);
        assert_close(count - output, sizes[i].name, 0.06, 0);
    }
}

/* The generic profiles with the dimensions of a table's row; kv_heads and ffn_hidden may be left out. */
static void test_generic(void **state) {
    (void)state;
    dts_model gpt = bind_text("{profile: gpt, layers: 24, hidden: 2304, heads: 24, ffn_hidden: 9216, vocab: 51200}");
    assert_int_equal(gpt.architecture, DTS_ARCH_GPT);
    assert_true(gpt.causal && gpt.bias && gpt.qkv_bias && gpt.dropout && gpt.tied_embeddings && !gpt.rotary);
    assert_close(dts_model_parameters(&gpt), 24 * (12 * 2304.0 * 2304 + 13 * 2304) + 51200 * 2304.0 + 2 * 2304, 0, 0);
    dts_model bert = bind_text("{profile: bert, layers: 24, hidden: 1024, heads: 16, vocab: 30528}");
    assert_close(dts_model_parameters(&bert), 336226108 + 6 * 1025, 0, 0);
    dts_model llama = bind_text(
        "{profile: llama, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn_hidden: 14336, vocab: 128256}");
    assert_close(dts_model_parameters(&llama), 8030261248, 0, 0);
    dts_model mingpt = bind_text("{profile: mingpt, layers: 12, hidden: 768, heads: 12}");
    assert_int_equal(mingpt.loss, DTS_LOSS_SUM);
    assert_close(dts_model_parameters(&mingpt), 162052608, 0, 0);
}

/* Some publish what one token uses without the token embedding: gpt-oss (model card, table 1), DeepSeek-V2-Lite (2.4B).
 */
static void test_active_without_embedding(void **state) {
    (void)state;
    dts_model large = bind_text("gpt-oss-120b"), small = bind_text("gpt-oss-20b");
    const double embedding = 201088.0 * 2880;
    assert_close(dts_model_parameters(&large), 116.83e9, 1e-4, 0);
    assert_close(dts_model_parameters(&small), 20.91e9, 3e-4, 0);
    assert_close(dts_model_active_parameters(&large) - embedding, 5.13e9, 2e-3, 0);
    assert_close(dts_model_active_parameters(&small) - embedding, 3.61e9, 2e-3, 0);
    dts_model lite = bind_text("deepseek-v2-lite");
    assert_close(dts_model_active_parameters(&lite) - 102400.0 * 2048, 2.4e9, 0.025, 0);
}

/* What single keys cannot say, and dimensions that would overflow: an error that names the trouble, never a crash. */
static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{profile: gpt2, heads: 7}", "hidden 768 is not a multiple of heads 7"},
        {"{profile: llama-3-8b, kv_heads: 5}", "heads 32 is not a multiple of kv_heads 5"},
        {"{profile: gpt2, gated_ffn: true}", "gated_ffn and activation_function do not fit together"},
        {"{profile: gpt2, head: classification}", "a classification head needs a pooler"},
        {"{profile: gpt2, heads: 65536, head_dim: 16777216}", "heads x head_dim is more than 16777216"},
        {"{profile: gpt2, hidden: 16777216, heads: 1}", "4 x hidden is more than 16777216"},
        {"{profile: mixtral-8x7b, experts_per_token: 9}", "experts_per_token 9 is not between 1 and experts 8"},
        {"{profile: llama-3-8b, experts_per_token: 2}", "a mixture of experts is described, but experts is 0"},
        {"{profile: mixtral-8x7b, capacity_factor: 1.25, load_imbalance: 1.5}",
         "load_imbalance is for dropless routing: with capacity_factor every expert is padded to the same size"},
        {"{profile: llama-3-8b, q_lora_rank: 512}", "widths of latent attention stand without kv_lora_rank"},
        {"{profile: llama-3-8b, kv_heads: 0, kv_lora_rank: 512}", "latent attention needs the widths of its heads"},
        {"{profile: deepseek-v3, kv_heads: 8}",
         "latent attention has a key for every head, kv_heads 8 are not heads 128"},
        {"{profile: gpt, layers: 1, hidden: 8, heads: 1, vocab: 9, expected_tolerance: 0.01}",
         "expected_tolerance stands without expected_parameters"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        setup(&f, cases[i].text);
        dts_model model = {0};
        assert_int_equal(bind(&f, &model), DTS_INVALID);
        assert_string_equal(dts_diag_get(f.diag, 0)->text, cases[i].message);
        teardown(&f);
    }
}

static void test_out_of_bounds(void **state) {
    (void)state;
    static const char *const values[] = {
        "layers: 0",      "layers: -1",      "layers: 100001",     "layers: 9223372036854775808",
        "hidden: 0",      "hidden: 1e30",    "hidden: 16777217",   "heads: 0",
        "heads: 65537",   "kv_heads: -8",    "head_dim: -1",       "ffn_hidden: 99999999999",
        "vocab: 0",       "vocab: 1e12",     "max_positions: -1",  "token_types: -1",
        "labels: 0",      "heads: 1.5",      "heads: .nan",        "predicted_share: 0",
        "loss: none",     "causal: perhaps", "predicted_share: 2", "expected_parameters: -1",
        "dimension: 768",
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "{profile: gpt2, %s}", values[i]);
        fixture f;
        setup(&f, text);
        dts_model model = {0};
        if (bind(&f, &model) != DTS_INVALID) {
            fail_msg("'%s' was accepted", values[i]);
        }
        teardown(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_mingpt_names),
        cmocka_unit_test(test_generic),
        cmocka_unit_test(test_active_without_embedding),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_out_of_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
