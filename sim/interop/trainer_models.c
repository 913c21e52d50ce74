/* What Hugging Face and torchtune call the models that have a profile here. A name is that of an architecture, followed
 * by words that leave it as it is: how it was tuned, when, and how its weights are stored. One word that is none of
 * these makes it another model: a distillation, a vision model, a longer vocabulary.
 *
 * [1] huggingface.co/unsloth, config.json of its models in bnb-4bit: quantization_config, nf4 with double quantisation.
 */
#include <ctype.h>
#include <string.h>

#include "interop/inside.h"

/* Names as dts_trainer_model_key() leaves them. */
#define M(profile, name) IN("plan.model=" profile, "model-key=" name)
const dts_mapping dts_trainer_models[] = {
    M("llama-2-7b", "llama-2-7b"),
    M("llama-2-7b", "llama2-7b"),
    M("llama-2-13b", "llama-2-13b"),
    M("llama-2-13b", "llama2-13b"),
    M("llama-2-70b", "llama-2-70b"),
    M("llama-2-70b", "llama2-70b"),
    M("llama-3-8b", "llama-3-8b"),
    M("llama-3-8b", "llama-3.1-8b"),
    M("llama-3-8b", "llama3-8b"),
    M("llama-3-8b", "llama3-1-8b"),
    M("llama-3-70b", "llama-3-70b"),
    M("llama-3-70b", "llama-3.1-70b"),
    M("llama-3-70b", "llama-3.3-70b"),
    M("llama-3-70b", "llama3-70b"),
    M("llama-3-70b", "llama3-1-70b"),
    M("llama-3-70b", "llama3-3-70b"),
    M("llama-3-405b", "llama-3.1-405b"),
    M("llama-3-405b", "llama3-1-405b"),
    M("mistral-7b", "mistral-7b"),
    M("mixtral-8x7b", "mixtral-8x7b"),
    M("mixtral-8x22b", "mixtral-8x22b"),
    M("gemma-2-9b", "gemma-2-9b"),
    M("gemma-2-27b", "gemma-2-27b"),
    M("gemma-3-27b", "gemma-3-27b"),
    M("gpt2", "gpt2"),
    M("gpt2-medium", "gpt2-medium"),
    M("gpt2-large", "gpt2-large"),
    M("gpt2-xl", "gpt2-xl"),
    M("bert-base", "bert-base"),
    M("bert-large", "bert-large"),
    M("qwen3-30b-a3b", "qwen3-30b-a3b"),
    M("qwen3-235b-a22b", "qwen3-235b-a22b"),
    M("gpt-oss-20b", "gpt-oss-20b"),
    M("gpt-oss-120b", "gpt-oss-120b"),
    M("deepseek-v2", "deepseek-v2"),
    M("deepseek-v2-lite", "deepseek-v2-lite"),
    M("deepseek-v3", "deepseek-v3"),
    M("llama-3.2-1b", "llama-3.2-1b"),
    M("llama-3.2-1b", "llama3-2-1b"),
    M("llama-3.2-3b", "llama-3.2-3b"),
    M("llama-3.2-3b", "llama3-2-3b"),
    M("qwen2.5-0.5b", "qwen2.5-0.5b"),
    M("qwen2.5-0.5b", "qwen2-0.5b"),
    M("qwen2.5-0.5b", "qwen2-5-0-5b"),
    M("qwen2.5-1.5b", "qwen2.5-1.5b"),
    M("qwen2.5-1.5b", "qwen2-1.5b"),
    M("qwen2.5-1.5b", "qwen2-5-1-5b"),
    M("qwen2.5-3b", "qwen2.5-3b"),
    M("qwen2.5-3b", "qwen2-5-3b"),
    M("qwen2.5-7b", "qwen2.5-7b"),
    M("qwen2.5-7b", "qwen2-7b"),
    M("qwen2.5-7b", "qwen2-5-7b"),
    M("qwen2.5-14b", "qwen2.5-14b"),
    M("qwen2.5-14b", "qwen2-5-14b"),
    M("qwen2.5-32b", "qwen2.5-32b"),
    M("qwen2.5-32b", "qwen2-5-32b"),
    M("qwen2.5-72b", "qwen2.5-72b"),
    M("qwen2.5-72b", "qwen2-72b"),
    M("qwen2.5-72b", "qwen2-5-72b"),
    M("qwen3-0.6b", "qwen3-0.6b"),
    M("qwen3-0.6b", "qwen3-0-6b"),
    M("qwen3-1.7b", "qwen3-1.7b"),
    M("qwen3-1.7b", "qwen3-1-7b"),
    M("qwen3-4b", "qwen3-4b"),
    M("qwen3-8b", "qwen3-8b"),
    M("qwen3-14b", "qwen3-14b"),
    M("qwen3-32b", "qwen3-32b"),
    M("qwen3-coder-480b-a35b", "qwen3-coder-480b-a35b"),
    M("gemma-2-2b", "gemma-2-2b"),
    M("gemma-2-2b", "gemma2-2b"),
    M("gemma-2-9b", "gemma2-9b"),
    M("gemma-2-27b", "gemma2-27b"),
    M("gemma-3-1b", "gemma-3-1b"),
    M("gemma-3-4b", "gemma-3-4b"),
    M("gemma-3-12b", "gemma-3-12b"),
    M("phi-4", "phi-4"),
    M("phi-4", "phi4-14b"),
    M("mistral-7b-v0.3", "mistral-7b-v0.3"),
    M("mistral-7b-v0.3", "mistral-7b-instruct-v0.3"),
    M("mistral-nemo-12b", "mistral-nemo"),
    M("mistral-small-24b", "mistral-small-24b"),
    M("tinyllama-1.1b", "tinyllama-1.1b"),
    M("tinyllama-1.1b", "tinyllama"),
    M("tinyllama-1.1b", "tinyllama-1.1b-intermediate-step-1431k-3t"),
    M("kimi-k2", "kimi-k2"),
    M("deepseek-v3", "deepseek-v3.1"),
    M("deepseek-v3", "deepseek-r1"),
    M("deepseek-v3", "deepseek-r1-zero"),
    M("deepseek-v2", "deepseek-v2.5"),
    M("deepseek-v2", "deepseek-coder-v2"),
    M("deepseek-v2-lite", "deepseek-coder-v2-lite"),
    M("qwen3-30b-a3b", "qwen3-coder-30b-a3b"),
    M("qwen3-8b", "deepseek-r1-0528-qwen3-8b"),
    M("qwen2.5-32b", "qwq-32b"),
    M("llama-3-8b", "deepseek-r1-distill-llama-8b"),
    M("llama-3-70b", "deepseek-r1-distill-llama-70b"),
    M("qwen2.5-7b", "deepseek-r1-distill-qwen-7b"),
    M("qwen2.5-14b", "deepseek-r1-distill-qwen-14b"),
    M("qwen2.5-32b", "deepseek-r1-distill-qwen-32b"),
    {0},
};

static char *lower(dts_arena *arena, const char *text, size_t length) {
    char *name = dts_arena_strndup(arena, text, length);
    for (char *at = name; at != NULL && *at != '\0'; at++) {
        *at = *at == '_' ? '-' : (char)tolower((unsigned char)*at);
    }
    return name;
}

/* The longest name of the table that `name` begins with; 0: none. */
static size_t known_length(const char *name) {
    size_t longest = 0;
    for (const dts_mapping *m = dts_trainer_models; m->ours != NULL; m++) {
        const char *known = m->theirs + strlen("model-key=");
        const size_t length = strlen(known);
        const bool begins = strncmp(name, known, length) == 0 && (name[length] == '\0' || name[length] == '-');
        longest = begins && length > longest ? length : longest;
    }
    return longest;
}

static bool is_one_of(const char *const *words, const char *word, size_t length) {
    for (; *words != NULL; words++) {
        if (strncmp(*words, word, length) == 0 && (*words)[length] == '\0') {
            return true;
        }
    }
    return false;
}

/* "-instruct-2507-fp8": does it leave the architecture as it is? *stored: what its words say of the weights. */
static bool leaves_architecture(const char *words, dts_arena *arena, const char **stored) {
    static const char *const tunings[] = {"instruct", "chat",     "base",     "it",      "pt",
                                          "hf",       "thinking", "uncased",  "cased",   "v0.1",
                                          "v1.0",     "bf16",     "terminus", "unsloth", NULL};
    static const char *const formats[] = {"bnb", "4bit", "8bit", "fp8", "gptq", "awq", "int4", "int8", NULL};
    enum { DATE = 4 }; /* 0528, 2507 */
    for (const char *at = words; *at == '-';) {
        const size_t length = strcspn(at + 1, "-");
        const bool date = length == DATE && strspn(at + 1, "0123456789") == length;
        if (is_one_of(formats, at + 1, length)) {
            *stored = *stored != NULL ? dts_arena_printf(arena, "%s-%.*s", *stored, (int)length, at + 1)
                                      : dts_arena_strndup(arena, at + 1, length);
        } else if (!date && !is_one_of(tunings, at + 1, length)) {
            return false;
        }
        at += 1 + length;
    }
    return true;
}

/* "meta-llama/Meta-Llama-3.1-8B-Instruct" → "llama-3.1-8b", "torchtune.models.llama3.lora_llama3_8b" → "llama3-8b". */
const char *dts_trainer_model_key(dts_arena *arena, const char *text, bool component, const char **stored) {
    static const char *const beginnings[] = {"meta-", "qlora-", "lora-"};
    size_t length = strlen(text);
    while (length > 1 && text[length - 1] == '/') { /* a folder */
        length--;
    }
    char *name = lower(arena, text, length);
    char *last = name == NULL ? NULL : strrchr(name, component ? '.' : '/');
    name = last == NULL ? name : last + 1;
    for (size_t i = 0; name != NULL && i < sizeof beginnings / sizeof beginnings[0]; i++) {
        const size_t n = strlen(beginnings[i]);
        name += strncmp(name, beginnings[i], n) == 0 ? n : 0;
    }
    static const char *const kin[][2] = {{"qwen2.5-coder-", "qwen2.5-"}, {"qwen2.5-math-", "qwen2.5-"}};
    for (size_t i = 0; name != NULL && i < sizeof kin / sizeof kin[0]; i++) {
        if (strncmp(name, kin[i][0], strlen(kin[i][0])) == 0) {
            name = dts_arena_printf(arena, "%s%s", kin[i][1], name + strlen(kin[i][0]));
        }
    }
    const size_t known = name == NULL ? 0 : known_length(name);
    const char *format = NULL;
    *stored = NULL;
    if (known > 0 && leaves_architecture(name + known, arena, &format)) {
        name[known] = '\0';
        *stored = format;
    }
    return name;
}

const char *dts_trainer_stored_as(const char *stored) {
    const bool eight = strchr(stored, '8') != NULL;
    return strcmp(stored, "fp8") == 0 ? "native" : eight ? "int8" : "nf4"; /* [1] */
}
