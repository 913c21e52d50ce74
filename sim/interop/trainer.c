/* Arguments of Hugging Face's Trainer and of what is built on it, on a command line or as YAML: TRL, LLaMA-Factory,
 * Axolotl; and torchtune's recipes. One table serves all, since their keys do not contradict each other. Keys are
 * written with - here, whatever stands in the file. The script has arguments of its own, which are no mistakes.
 *
 * Sources: huggingface/transformers, src/transformers/training_args.py; huggingface/trl, trl/trainer/model_config.py;
 * huggingface/accelerate, commands/launch.py; hiyouga/LLaMA-Factory, src/llamafactory/hparams;
 * axolotl-ai-cloud/axolotl, src/axolotl/utils/schemas; pytorch/torchtune, recipes/configs. */
#include <ctype.h>
#include <string.h>

#include "interop/inside.h"

#define AXOLOTL    "base-model=*; "
#define TORCHTUNE  "model.-component-=*; "
#define TARGET(to) "lora-targets." to "=true"
#define FSDP(key)  "fsdp.on=true; fsdp-config." key

static const dts_mapping machine_rules[] = {
    IN("plan.nodes=@", "nnodes=@"),
    IN("plan.nodes=@", "num-machines=@"),
    IN("plan.nodes=@", "num-nodes=@"),
    IN("plan.gpus_per_node=@", "nproc-per-node=@"),
    IN("plan.gpus_per_node=@", "num-gpus=@"),
    IN("plan.gpus=@", "num-processes=@"),
    IN("plan.stack=torchtune", "model.-component-=torchtune.@"),
    {0},
};

static const dts_mapping training_rules[] = {
    IN("training.sequence_length=@", "block-size=@"),
    IN("training.sequence_length=@", "max-seq-length=@"),
    IN("training.sequence_length=@", "max-seq-len=@"),
    IN("training.sequence_length=@", "max-length=@"),
    IN("training.sequence_length=@", "model-max-length=@"),
    IN("training.sequence_length=@", "cutoff-len=@"),
    IN("training.sequence_length=@", "sequence-len=@"),
    IN("training.sequence_length=@", "tokenizer.max-seq-len=@"),
    IN("training.micro_batch=@", "per-device-train-batch-size=@"),
    IN("training.micro_batch=@", "micro-batch-size=@"),
    IN("training.micro_batch=@", "batch-size=@"),
    IN("training.micro_batch=8", ""), /* TrainingArguments */
    IN("plan.microbatches=@", "gradient-accumulation-steps=@"),
    IN("plan.microbatches=1", ""),
    IN("plan.steps=@", "max-steps=@"),
    IN("plan.steps=@", "max-train-steps=@"),
    /* DeepSpeed's engine keeps half weights and fp32 copies; else half precision is autocast of what was loaded */
    IN("training.precision=bf16; stack.master_weights=true", "deepspeed=*; bf16=true"),
    IN("training.precision=fp16; stack.master_weights=true", "deepspeed=*; fp16=true"),
    IN("training.precision=bf16; stack.master_weights=true", "use-deepspeed=true; bf16=true"),
    IN("training.precision=fp16; stack.master_weights=true", "use-deepspeed=true; fp16=true"),
    IN("training.precision=bf16; stack.master_weights=true", "use-deepspeed=true; mixed-precision=bf16"),
    IN("training.precision=fp16; stack.master_weights=true", "use-deepspeed=true; mixed-precision=fp16"),
    IN("training.precision=bf16", AXOLOTL "bf16=true"),
    IN("training.precision=bf16", TORCHTUNE "dtype=bf16"),
    IN("training.precision=fp32", TORCHTUNE "dtype=fp32"),
    IN("training.precision=bf16", "torch-dtype=bfloat16"),
    IN("training.precision=bf16", "dtype=bfloat16"),
    IN("training.precision=bf16", "bfloat16=true"),
    IN("training.precision=bf16", "pure-bf16=true"),
    IN("training.precision=amp-bf16", "bf16=true"),
    IN("training.precision=amp-fp16", "fp16=true"),
    IN("training.precision=amp-bf16", "mixed-precision=bf16"),
    IN("training.precision=amp-fp16", "mixed-precision=fp16"),
    IN("training.precision=fp16", "torch-dtype=float16"),
    IN("training.precision=fp16", "dtype=float16"),
    IN("training.precision=fp16", "float16=true"),
    IN("training.precision=tf32", "tf32=true"),
    IN("training.precision=fp32", ""),
    IN("training.recompute=none", "disable-gradient-checkpointing=true"),
    IN("training.recompute=full", "gradient-checkpointing=true"),
    IN("training.recompute=full", FSDP("activation-checkpointing=true")),
    IN("training.recompute=none", "gradient-checkpointing=false"),
    IN("training.recompute=full", "enable-activation-checkpointing=true"),
    IN("training.recompute=full", "finetuning-type=*"), /* LLaMA-Factory */
    IN("training.recompute=none", ""),
    IN("training.optimizer=adamw", "optim=adamw"),
    IN("training.optimizer=adamw", "optim=adamw_torch"),
    IN("training.optimizer=adamw", "optim=adamw_torch_fused"),
    IN("training.optimizer=adamw", "optim=adamw_hf"),
    IN("training.optimizer=adamw", "optim=adamw_apex_fused"),
    IN("training.optimizer=adamw", "optim=paged_adamw"),
    IN("training.optimizer=adamw", "optim=paged_adamw_32bit"),
    IN("training.optimizer=adamw-8bit", "optim=adamw_8bit"),
    IN("training.optimizer=adamw-8bit", "optim=adamw_bnb_8bit"),
    IN("training.optimizer=adamw-8bit", "optim=paged_adamw_8bit"),
    IN("training.optimizer=adafactor", "optim=adafactor"), /* without a first moment */
    IN("training.optimizer=sgd", "optim=sgd"),
    IN("training.optimizer=lion", "optim=lion_32bit"),
    IN("training.optimizer=lion", "optim=paged_lion_32bit"),
    IN("training.optimizer=adamw", "optim.-component-=torch.optim.AdamW"),
    IN("training.optimizer=adamw-8bit", "optim.-component-=bitsandbytes.optim.@"),
    IN("training.optimizer=adamw", ""),
    IN("stack.compile=@", "torch-compile=@"),
    IN("stack.compile=@", "compile=@"),
    {0},
};

static const dts_mapping adapter_rules[] = {
    IN("plan.lora_rank=0", "finetuning-type=full"),
    IN("plan.lora_rank=0", "use-peft=false"),
    IN("plan.lora_rank=0", "adapter=none"),
    IN("plan.lora_rank=@", "finetuning-type=lora; lora-rank=@"),
    IN("plan.lora_rank=8", "finetuning-type=lora"),
    IN("plan.lora_rank=@", "lora-r=@"),
    IN("plan.lora_rank=@", "lora-rank=@"),
    IN("plan.lora_rank=@", "model.lora-rank=@"),
    IN("plan.lora_rank=8", "model.lora-builder=*"),
    IN("plan.lora_rank=16", "use-peft=true"),
    IN("plan.lora_targets=all-linear", TARGET("all")),
    IN("plan.lora_targets=all-linear", TARGET("all-linear")),
    IN("plan.lora_targets=all-linear", TARGET("gate_proj")),
    IN("plan.lora_targets=all-linear", TARGET("up_proj")),
    IN("plan.lora_targets=all-linear", TARGET("down_proj")),
    IN("plan.lora_targets=all-linear", "lora-target-linear=true"),
    IN("plan.lora_targets=all-linear", "model.apply-lora-to-mlp=true"),
    IN("plan.lora_targets=attention", TARGET("k_proj")),
    IN("plan.lora_targets=attention", TARGET("o_proj")),
    IN("plan.lora_targets=attention", TARGET("output_proj")),
    IN("plan.lora_targets=query-value", TARGET("q_proj")),
    IN("plan.lora_targets=query-value", TARGET("v_proj")),
    IN("plan.lora_targets=all-linear", "finetuning-type=lora"),
    IN("plan.lora_base=nf4", "load-in-4bit=true"),
    IN("plan.lora_base=nf4", "adapter=qlora"),
    IN("plan.lora_base=nf4", "quantization-bit=4"),
    IN("plan.lora_base=nf4", "model.lora-builder=qlora"),
    IN("plan.lora_base=nf4", "model.quantize-base=true"),
    IN("plan.lora_base=int8", "load-in-8bit=true"),
    IN("plan.lora_base=int8", "quantization-bit=8"),
    IN("plan.lora_base=@", "model.stored=@"),
    {0},
};

#define SHARDS(flag, reshards) \
    IN("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=" reshards, "fsdp." flag "=true")
static const dts_mapping plan_rules[] = {
    IN("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=true",
       "fsdp.full_shard=true; fsdp-config.reshard-after-forward=true"),
    IN("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=@", FSDP("reshard-after-forward=@")),
    IN("parallelism.data_parallel=ddp", "fsdp.no_shard=true"),
    SHARDS("full_shard", "true"),
    SHARDS("shard_grad_op", "false"),
    SHARDS("hybrid_shard", "true"),
    SHARDS("hybrid_shard_zero2", "false"),
    IN("parallelism.data_parallel=fsdp", "fsdp=true"),
    IN("parallelism.data_parallel=fsdp", "use-fsdp=true"),
    IN("parallelism.data_parallel=fsdp", "fsdp-version=*"),
    IN("parallelism.data_parallel=zero1", "use-deepspeed=true; zero-stage=1"),
    IN("parallelism.data_parallel=zero2", "use-deepspeed=true; zero-stage=2"),
    IN("parallelism.data_parallel=zero3", "use-deepspeed=true; zero-stage=3"),
    IN("parallelism.data_parallel=fsdp", "model.-component-=torchtune.@"),
    IN("parallelism.data_parallel=ddp", ""),
    IN("parallelism.tensor=@", "tensor-parallel-dim=@"),  /* torchtune */
    IN("parallelism.tensor=@", "tensor-parallel-size=@"), /* Axolotl */
    IN("parallelism.tensor=@", "parallelism-config-tp-size=@"),
    IN("parallelism.context=@", "context-parallel-dim=@"),
    IN("parallelism.context=@", "context-parallel-size=@"),
    IN("parallelism.context=@", "parallelism-config-cp-size=@"),
    IN("plan.instances=@", "data-parallel-replicate-dim=@"),
    IN("plan.instances=@", "dp-replicate-size=@"),
    IN("plan.instances=@", "parallelism-config-dp-replicate-size=@"),
    IN("plan.shards_in_node=true", "fsdp.hybrid_shard=true"),
    IN("plan.shards_in_node=true", "fsdp.hybrid_shard_zero2=true"),
    IN("offload.optimizer=cpu; offload.parameters=cpu; offload.gradients=cpu", "fsdp.offload=true"),
    IN("offload.optimizer=cpu; offload.parameters=cpu; offload.gradients=cpu", "fsdp-cpu-offload=true"),
    IN("offload.optimizer=cpu; offload.parameters=cpu; offload.gradients=cpu", FSDP("offload-params=true")),
    IN("offload.activations=cpu", "enable-activation-offloading=true"),
    IN("offload.activations=cpu", "gradient-checkpointing=offload"),
    {0},
};

#define TIME  "no effect on the time of an iteration"
#define SOFT  "the software profile says it (stack.…)"
#define SHARD "follows from the number of GPUs and the other degrees"
#define LONG  "how many steps that is depends on the data: --tokens N tells time and money of a whole run"
static const dts_remark irrelevant[] = {
    {"num-train-epochs", LONG},
    {"num-epochs", LONG},
    {"epochs", LONG},
    {"max-steps-per-epoch", LONG},
    {"model-name-or-path", "names the model"},
    {"base-model", "names the model"},
    {"model.-component-", "names the model"},
    {"model-key", "names the model, which is given otherwise"},
    {"deepspeed", "DeepSpeed's file"},
    {"config-file", "accelerate's file"},
    {"deepspeed-config-file", "DeepSpeed's file"},
    {"mixed-precision", "the arguments of the training say it"},
    {"torch-dtype", "of weights that are computed with in fp32 or by autocast"},
    {"dtype", "of weights that are computed with in fp32 or by autocast"},
    {"tf32", "counts without bf16 and fp16"},
    {"attn-implementation", SOFT},
    {"flash-attention", SOFT},
    {"flash-attn", SOFT},
    {"sdp-attention", SOFT},
    {"use-liger-kernel", SOFT},
    {"liger-", SOFT},
    {"fsdp.auto_wrap", "a unit is a layer"},
    {"fsdp-config.version", "FSDP1 and FSDP2 are simulated alike"},
    {"fsdp-transformer-layer-cls-to-wrap", "a unit is a layer"},
    {"max-grad-norm", SOFT},
    {"lora-alpha", TIME},
    {"lora-dropout", "adapters have dropout"},
    {"lora-targets", "the widest set counts: query-value, attention or all-linear"},
    {"adapter", "its rank is lora_r"},
    {"use-peft", "its rank is lora_r"},
    {"packing", "samples are full"},
    {"sample-packing", "samples are full"},
    {"pad-to-sequence-len", "samples are full"},
    {"group-by-length", "samples are full"},
    {"auto-find-batch-size", "the batch that is written is simulated"},
    {"dataloader-", "input.…"},
    {"data-parallel-shard-dim", SHARD},
    {"dp-shard-size", SHARD},
    {"parallelism-config-dp-shard-size", SHARD},
    {"tensor-parallel-plan", SOFT},
    {"vllm-", "generation is not simulated"},
    {"per-device-eval-batch-size", TIME},
    {NULL, NULL},
};

static const dts_choice choices[] = {
    {"finetuning-type", "full, lora", NULL, "frozen layers and other adapters cannot be simulated"},
    {NULL, NULL, NULL, NULL},
};

/* What a script's own argument has in its name that changes the plan, or what is trained. */
#define DEGREES "say it with --set parallelism.tensor=…, parallelism.context=… or parallelism.shard_group=…"
static const dts_remark plan_words[] = {
    {"parallel", DEGREES},
    {"dp-shard", DEGREES},
    {"dp-replicate", DEGREES},
    {"modules-to-save", "modules that are trained whole beside adapters are not simulated: more memory is needed"},
    {"additional-target", "modules that are trained whole beside adapters are not simulated: more memory is needed"},
    {NULL, NULL},
};

/* Files that hold the plan: a later one counts where two do. */
static const dts_plan_file plan_files[] = {
    {"config-file", &dts_launcher_accelerate, NULL, NULL},
    {"deepspeed-config-file", &dts_launcher_deepspeed, NULL, NULL},
    {"deepspeed-config", &dts_launcher_deepspeed, NULL, NULL},
    {"deepspeed", &dts_launcher_deepspeed, NULL, NULL},
    {NULL, NULL, NULL, NULL},
};

/* ---- names ---- */

/* torchtune's builders say by their names that there are adapters, and in what the frozen weights are stored. */
static void add_builder(dts_settings *out) {
    static const char *const kinds[] = {"qlora", "lora"};
    const dts_setting *model = dts_settings_find(out, "model.-component-");
    const char *last = model == NULL ? NULL : strrchr(model->value, '.');
    for (size_t i = 0; last != NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t length = strlen(kinds[i]);
        if (strncmp(last + 1, kinds[i], length) == 0 && last[1 + length] == '_') {
            const dts_place place = model->place;
            dts_setting *added = dts_settings_add(out, "model.lora-builder", kinds[i], &place);
            if (added != NULL) {
                added->used = true;
            }
            return;
        }
    }
}

/* Axolotl trains all weights where `adapter` is left out, whatever the rank. */
static void add_adapter(dts_settings *out) {
    const dts_setting *rank = dts_settings_find(out, "lora-r");
    if (rank != NULL && dts_settings_find(out, "base-model") != NULL && dts_settings_find(out, "adapter") == NULL) {
        const dts_place place = rank->place;
        dts_settings_add(out, "adapter", "none", &place);
    }
}

static void add_model(dts_settings *out, dts_diag *diag) {
    static const char *const keys[] = {"model-name-or-path", "base-model", "model.-component-"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const dts_setting *named = dts_settings_find(out, keys[i]);
        if (named == NULL) {
            continue;
        }
        const dts_place place = named->place;
        const char *text = named->value, *stored = NULL,
                   *key = dts_trainer_model_key(out->arena, text, i == 2, &stored);
        out->failed = out->failed || key == NULL || dts_settings_add(out, "model-key", key, &place) == NULL;
        if (stored != NULL) {
            const char *simulated = dts_trainer_stored_as(stored);
            out->failed = out->failed || dts_settings_add(out, "model.stored", simulated, &place) == NULL;
            if (strncmp(stored, "bnb", strlen("bnb")) != 0) { /* bitsandbytes: what adapters.lora.base has */
                dts_diag_warning(diag, &place, NULL, NULL, "weights of '%s' are stored as %s: %s is nearest", text,
                                 stored, strcmp(simulated, "native") == 0 ? "16 bits" : simulated);
            }
        }
        return;
    }
}

/* ---- lists ---- */

/* "full_shard auto_wrap", or [q_proj, v_proj]: a key for each. What is left to the shell stays whole. */
static void split_list(dts_settings *out, const char *path, const char *keys) {
    static const char between[] = "[]\"', ";
    const dts_setting *list = dts_settings_find(out, path);
    if (list == NULL || strcmp(list->value, "false") == 0 || strcmp(list->value, "true") == 0 ||
        list->value[0] == '\0' || strchr(list->value, '$') != NULL) {
        return;
    }
    const dts_place place = list->place;
    const char *text = list->value;
    const size_t index = (size_t)(list - out->items);
    for (const char *at = text + strspn(text, between); *at != '\0'; at += strspn(at, between)) {
        const size_t length = strcspn(at, between);
        const char *key = dts_arena_printf(out->arena, "%s.%.*s", keys, (int)length, at);
        out->failed = out->failed || key == NULL || dts_settings_add(out, key, "true", &place) == NULL;
        at += length;
    }
    out->count--; /* the keys stand for it */
    memmove(out->items + index, out->items + index + 1, (out->count - index) * sizeof *out->items);
}

/* ---- FSDP ---- */

/* The launch line, the file of fsdp_config and Axolotl write fsdp_ or leave it out. */
static const char *fsdp_key(dts_arena *arena, const char *path) {
    static const char *const keys[] = {"offload-params", "reshard-after-forward", "sharding-strategy",
                                       "activation-checkpointing"};
    static const char section[] = "fsdp-config.", prefix[] = "fsdp-";
    const bool inside = strncmp(path, section, sizeof section - 1) == 0;
    const char *key = path + (inside ? sizeof section - 1 : 0);
    const bool prefixed = strncmp(key, prefix, sizeof prefix - 1) == 0;
    key += prefixed ? sizeof prefix - 1 : 0;
    bool known = inside;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        known = known || strcmp(key, keys[i]) == 0;
    }
    return known && prefixed ? dts_arena_printf(arena, "%s%s", section, key) : path;
}

/* A strategy is a word of `fsdp`. */
static void settle_strategy(dts_settings *out, dts_setting *s) {
    static const char *const numbers[] = {"full_shard", "shard_grad_op", "no_shard", "hybrid_shard",
                                          "hybrid_shard_zero2"};
    const bool number = s->value[0] >= '1' && s->value[0] <= '5' && s->value[1] == '\0';
    char *word = dts_arena_printf(out->arena, "fsdp.%s", number ? numbers[s->value[0] - '1'] : s->value);
    for (char *at = word; at != NULL && *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    dts_settings_rename(out, s, word);
    s->value = "true";
}

static bool switches_fsdp_on(const dts_setting *s, bool axolotl) {
    const bool off = strcmp(s->value, "false") == 0 || strcmp(s->value, "null") == 0;
    return !off && (strncmp(s->path, "fsdp.", 5) == 0 || (strcmp(s->path, "fsdp") == 0 && s->value[0] == 't') ||
                    strcmp(s->path, "use-fsdp") == 0 || strcmp(s->path, "fsdp-version") == 0 ||
                    (axolotl && strncmp(s->path, "fsdp-config.", 12) == 0));
}

/* fsdp.on where FSDP is on, so that its section counts: Axolotl's fsdp_version and section switch it on, too. */
static void settle_fsdp(dts_settings *out) {
    const bool axolotl = dts_settings_find(out, "base-model") != NULL;
    dts_setting *on = NULL;
    bool sections = false;
    for (size_t i = 0; i < out->count; i++) {
        dts_setting *s = &out->items[i];
        on = on == NULL && switches_fsdp_on(s, axolotl) ? s : on;
        sections = sections || strncmp(s->path, "fsdp-config.", 12) == 0;
        if (strcmp(s->path, "fsdp-config.sharding-strategy") == 0) {
            settle_strategy(out, s);
        }
    }
    if (on != NULL && sections && dts_settings_find(out, "fsdp.on") == NULL) {
        const dts_place place = on->place;
        on->used = on->used || strcmp(on->path, "fsdp-version") == 0 || strcmp(on->path, "use-fsdp") == 0;
        dts_setting *added = dts_settings_add(out, "fsdp.on", "true", &place);
        if (added != NULL) {
            added->used = true;
        }
    }
}

/* The file of --fsdp_config, as if it stood here. */
static dts_status read_fsdp(const char *name, dts_settings *out, dts_diag *diag) {
    dts_setting *named = dts_settings_find(out, "fsdp_config"); /* of YAML and JSON */
    named = named == NULL ? dts_settings_find(out, "fsdp-config") : named;
    if (named == NULL || strchr(named->value, '.') == NULL || strchr(named->value, '$') != NULL) {
        return DTS_OK;
    }
    dts_text text = {0};
    const char *path = dts_read_beside(name, named->value, out->arena, &text);
    dts_status status = DTS_OK;
    if (path == NULL) {
        dts_diag_warning(diag, &named->place, NULL, "lay it beside this file, or say what it holds: --set offload=…",
                         "cannot read '%s', which says how FSDP works", named->value);
    } else {
        named->used = true;
        const size_t before = out->count;
        status = dts_read_document(dts_text_string(&text), text.length, path, out, diag);
        for (size_t i = before; i < out->count; i++) {
            dts_settings_rename(out, &out->items[i],
                                dts_arena_printf(out->arena, "fsdp_config.%s", out->items[i].path));
        }
    }
    dts_text_free(&text);
    return status == DTS_OK && out->failed ? dts_diag_nomem(diag) : status;
}

/* A launch line that says nothing of nodes is one of a single node. */
static void add_node(dts_settings *out) {
    static const char *const nodes[] = {"nnodes", "num-machines", "num-nodes"};
    const dts_setting *each = dts_settings_find(out, "nproc-per-node");
    each = each != NULL ? each : dts_settings_find(out, "num-gpus");
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        each = dts_settings_find(out, nodes[i]) == NULL ? each : NULL;
    }
    if (each != NULL) {
        const dts_place place = each->place;
        dts_settings_add(out, nodes[0], "1", &place);
    }
}

/* Keys with -, true and false as we write them, and one name for what has two. */
static void settle(dts_settings *out, dts_diag *diag) {
    static const char inside[] = "deepspeed."; /* a map instead of a file: DeepSpeed's own keys */
    const dts_setting *within = NULL;
    for (size_t i = 0; i < out->count; i++) {
        dts_setting *s = &out->items[i];
        char *path = dts_arena_strndup(out->arena, s->path, strlen(s->path));
        const bool map = strncmp(s->path, inside, sizeof inside - 1) == 0;
        within = within == NULL && map ? s : within;
        for (char *at = map ? NULL : path; at != NULL && *at != '\0'; at++) {
            *at = *at == '_' ? '-' : *at;
        }
        static const char optimizer[] = "optimizer";
        if (path != NULL && strncmp(path, optimizer, sizeof optimizer - 1) == 0) {
            path = dts_arena_printf(out->arena, "optim%s", path + sizeof optimizer - 1);
        }
        dts_settings_rename(out, s, path == NULL ? NULL : fsdp_key(out->arena, path));
        if (path == NULL || out->failed) {
            return;
        }
        if (strcmp(s->value, "True") == 0 || strcmp(s->value, "False") == 0) {
            s->value = s->value[0] == 'T' ? "true" : "false";
        } else if (strcmp(path, "bf16") == 0 && strcmp(s->value, "auto") == 0) {
            s->value = "true"; /* Axolotl: where the GPU has it */
        } else if (strcmp(path, "adapter") == 0 && (s->value[0] == '\0' || strcmp(s->value, "null") == 0)) {
            s->value = "none"; /* Axolotl: all weights are trained */
        }
    }
    if (within != NULL) {
        const dts_place place = within->place;
        dts_settings_add(out, "deepspeed", "true", &place);
    }
    split_list(out, "fsdp", "fsdp");
    split_list(out, "lora-target-modules", "lora-targets");
    split_list(out, "lora-target", "lora-targets");
    split_list(out, "model.lora-attn-modules", "lora-targets");
    settle_fsdp(out);
    add_builder(out);
    add_adapter(out);
    add_model(out, diag);
    add_node(out);
}

static dts_status read(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag) {
    const char *dot = strrchr(name, '.');
    const bool yaml = dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
    const bool json = dot != NULL && strcmp(dot, ".json") == 0;
    dts_status status =
        yaml || json ? dts_read_document(text, length, name, out, diag) : dts_read_shell(text, length, name, out, diag);
    status = status == DTS_OK ? read_fsdp(name, out, diag) : status;
    if (status == DTS_OK) {
        settle(out, diag);
    }
    return status == DTS_OK && out->failed ? dts_diag_nomem(diag) : status;
}

const dts_launcher dts_launcher_trainer = {
    .name = "trainer",
    .help = "Hugging Face's Trainer, TRL, LLaMA-Factory, Axolotl, torchtune: arguments or YAML",
    .stack = "huggingface-trainer-2",
    .rules = {machine_rules, training_rules, adapter_rules, plan_rules, NULL},
    .irrelevant = irrelevant,
    .choices = choices,
    .models = dts_trainer_models,
    .plan_files = plan_files,
    .plan_words = plan_words,
    .foreign_keys = true,
    .comment = "# ",
    .read = read,
};
