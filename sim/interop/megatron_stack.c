/* Megatron-LM's flags for what our stacks say: which kernels are fused, what runs beside what. A script that leaves
 * such a flag out says something, too.
 *
 * Sources: NVIDIA/Megatron-LM megatron/training/arguments.py at 000c4ac (validate_args: what needs what) and
 * [1] megatron/core/distributed/distributed_data_parallel.py: without overlap_grad_reduce there is one bucket. */
#include "interop/inside.h"

#define OUT         DTS_TO_THEIRS
#define IN          DTS_TO_OURS
#define FUSED       "cross-entropy-loss-fusion=true; cross-entropy-fusion-impl=te"
#define NARROW      "fp8-param-gather=true"
#define BF16_GATHER "stack.fp8.primary_weights=true; offload.optimizer=cpu"
#define MODULES     "stack.cuda_graphs=layers; stack.cuda_graph_modules=[@]"
/* transformer_config.py, __post_init__ */
#define NO_FULL \
    "graphs of modules take no full recomputation: set training.recompute=selective, or stack.cuda_graph_modules=[]"
#define NEEDS_DELAYED \
    "--fp8-param-gather beside --optimizer-cpu-offload needs --fp8-recipe delayed: bf16 weights are gathered"

const dts_mapping dts_megatron_stack_rules[] = {
    {"stack.attention=materialised", "attention-backend=unfused", 0, NULL, false},
    {"stack.attention=flash; stack.cudnn_attention=false", "attention-backend=flash", 0, NULL, false},
    {"stack.attention=flash; stack.cudnn_attention=true", "attention-backend=fused", IN, NULL, false},
    {"stack.attention=flash", "", OUT, NULL, false}, /* auto takes cuDNN's where it is faster */
    {"stack.cudnn_attention=*", "", OUT, NULL, false},
    {"stack.aiter_attention=*", "", OUT, NULL, false}, /* variables of Transformer Engine's environment */
    {"stack.fuse.loss=true", FUSED, OUT, NULL, false},
    {"stack.fuse.loss=true", "cross-entropy-loss-fusion=true", IN, NULL, false},
    {"stack.fuse.loss=false", "", 0, NULL, false},
    {"stack.fuse.bias_gelu=false; model.gated_ffn=true", "no-bias-swiglu-fusion=true", OUT, NULL, false},
    {"stack.fuse.bias_gelu=false", "no-bias-gelu-fusion=true", OUT, NULL, false},
    {"stack.fuse.bias_gelu=false", "swiglu=true; no-bias-swiglu-fusion=true", IN, NULL, false},
    {"stack.fuse.bias_gelu=false", "no-bias-gelu-fusion=true", IN, NULL, false},
    {"stack.fuse.bias_gelu=true", "", OUT, NULL, false},
    {"stack.fuse.bias_dropout_add=false", "no-bias-dropout-fusion=true", 0, NULL, false},
    {"stack.fuse.bias_dropout_add=true", "", OUT, NULL, false},
    {"stack.fuse.softmax=false", "no-masked-softmax-fusion=true", 0, NULL, false},
    {"stack.fuse.softmax=true", "", OUT, NULL, false},
    {"stack.fuse.rotary=false; model.rotary=true", "no-rope-fusion=true", OUT, NULL, false},
    {"stack.fuse.rotary=false", "no-rope-fusion=true", IN, NULL, false},
    {"stack.fuse.rotary=*", "", OUT, NULL, false},
    /* arguments.py: --use-torch-fsdp2 has no buffer that products of weights could add to */
    {"stack.accumulate_kernel=false; parallelism.data_parallel=fsdp", "no-gradient-accumulation-fusion=true", OUT,
     "--use-torch-fsdp2 adds gradients with a kernel of its own: set stack.accumulate_kernel=true", false},
    {"stack.accumulate_kernel=true", "no-gradient-accumulation-fusion=true", 0, NULL, false},
    {"stack.accumulate_kernel=*", "", OUT, NULL, false},
    {"stack.fp32_gradients=false; training.precision=fp16", "", OUT, NULL, false},
    {"stack.fp32_gradients=false; training.precision=fp32", "", OUT, NULL, false},
    {"stack.fp32_gradients=false", "grad-reduce-in-bf16=true", 0, NULL, false},
    {"stack.fp32_gradients=true; training.precision=fp32", "", OUT, NULL, false},
    {"stack.fp32_gradients=true", "accumulate-allreduce-grads-in-fp32=true", OUT, NULL, false},
    {"stack.fp32_gradients=bf16", "", OUT, NULL, false},
    /* arguments.py turns it on for bf16 only */
    {"stack.fp32_gradients=true", "fp16=true; accumulate-allreduce-grads-in-fp32=true", IN, NULL, false},
    {"stack.fp32_gradients=false", "fp16=true", IN, NULL, false},
    {"stack.optimizer.gradient_clipping=false", "clip-grad=0", 0, NULL, false},
    {"stack.optimizer.gradient_clipping=false", "clip-grad=0.0", IN, NULL, false},
    {"stack.optimizer.gradient_clipping=true", "clip-grad=*", IN, NULL, false},
    {"stack.optimizer.gradient_clipping=true", "", OUT, NULL, false},
    {"stack.ddp.overlap=true", "overlap-grad-reduce=true", IN, NULL, false},
    {"stack.ddp.overlap=true", "use-megatron-fsdp=true", IN, NULL, false},
    {"stack.ddp.overlap=true", "use-torch-fsdp2=true", IN, NULL, false},
    {"stack.ddp.overlap=false; stack.ddp.bucket=1 TB; stack.ddp.first_bucket=1 TB", "", IN, NULL, false}, /* [1] */
    {"plan.bucket_elements=@; plan.reduces_beside=true", "ddp-bucket-size=@", OUT, NULL, false},
    {"plan.bucket_elements=@", "overlap-grad-reduce=true; ddp-bucket-size=@", IN, NULL, false},
    {"stack.fp8.activation_input=true", "activation-func-fp8-input-store=true", 0, NULL, false},
    {"stack.fp8.primary_weights=true; training.precision=fp8; stack.fp8.recipe=delayed", NARROW, OUT, NULL, false},
    /* arguments.py: the two beside each other take that recipe */
    {BF16_GATHER "; training.precision=fp8", "", OUT, NEEDS_DELAYED, false},
    {BF16_GATHER "; training.precision=amp-fp8", "", OUT, NEEDS_DELAYED, false},
    {BF16_GATHER "; training.precision=mxfp8", "", OUT, NEEDS_DELAYED, false},
    {"stack.fp8.primary_weights=true; training.precision=fp8", NARROW, OUT, NULL, false},
    {"stack.fp8.primary_weights=true; training.precision=amp-fp8", NARROW, OUT, NULL, false},
    {"stack.fp8.primary_weights=true; training.precision=mxfp8", NARROW, OUT, NULL, false},
    {"stack.fp8.primary_weights=true", "fp8-format=*; fp8-param-gather=true", IN, NULL, false},
    {"stack.fp8.primary_weights=false", "fp8-format=*", IN, NULL, false},
    {"stack.fp8.primary_weights=*", "", OUT, NULL, false},
    {"stack.cuda_graphs=layers; stack.cuda_graph_modules=[]", "cuda-graph-impl=local", OUT, NULL, false},
    {MODULES "; training.recompute=full", "", OUT, NO_FULL, true},
    {MODULES, "cuda-graph-impl=transformer_engine; cuda-graph-scope=@", OUT, NULL, false},
    {"stack.cuda_graphs=layers", "cuda-graph-impl=local", OUT, NULL, false},
    {"stack.cuda_graphs=iteration",
     "cuda-graph-impl=local; cuda-graph-scope=full_iteration; no-check-for-nan-in-loss-and-grad=true", OUT, NULL,
     false},
    {"stack.cuda_graphs=none", "", OUT, NULL, false},
    {"stack.cuda_graph_modules=*", "", OUT, NULL, false},
    /* docs/user-guide/features/cuda_graph.md: --cuda-graph-modules since the autumn of 2025, --cuda-graph-scope before,
     * with "full" for all of a layer */
    {"stack.cuda_graphs=iteration", "cuda-graph-impl=full_iteration", IN, NULL, false},
    {"stack.cuda_graphs=iteration", "cuda-graph-impl=local; cuda-graph-scope=full_iteration", IN, NULL, false},
    {"stack.cuda_graphs=iteration", "enable-cuda-graph=true; cuda-graph-scope=full_iteration", IN, NULL, false},
    {"stack.cuda_graphs=layers", "cuda-graph-impl=*; cuda-graph-scope=full", IN, NULL, false},
    {"stack.cuda_graphs=layers", "enable-cuda-graph=true; cuda-graph-scope=full", IN, NULL, false},
    {"stack.cuda_graphs=layers", "external-cuda-graph=true; cuda-graph-scope=full", IN, NULL, false},
    {MODULES, "cuda-graph-impl=transformer_engine; cuda-graph-scope=@", IN, NULL, false},
    {MODULES, "cuda-graph-impl=transformer_engine; cuda-graph-modules=@", IN, NULL, false},
    {MODULES, "cuda-graph-impl=local; cuda-graph-scope=@", IN, NULL, false},
    {MODULES, "cuda-graph-impl=local; cuda-graph-modules=@", IN, NULL, false},
    /* arguments.py: the names of the two implementations before --cuda-graph-impl */
    {MODULES, "enable-cuda-graph=true; cuda-graph-scope=@", IN, NULL, false},
    {MODULES, "external-cuda-graph=true; cuda-graph-scope=@", IN, NULL, false},
    {"stack.cuda_graphs=layers", "enable-cuda-graph=true", IN, NULL, false},
    {"stack.cuda_graphs=layers", "external-cuda-graph=true", IN, NULL, false},
    {"stack.cuda_graphs=layers", "cuda-graph-impl=transformer_engine", IN, NULL, false},
    {"stack.cuda_graphs=layers", "cuda-graph-impl=local", IN, NULL, false},
    {"stack.cuda_graphs=none", "cuda-graph-impl=none", IN, NULL, false},
    {"stack.pipeline.p2p_overlap=false; plan.interleaved=true", "no-overlap-p2p-communication=true", OUT, NULL, false},
    {"stack.pipeline.p2p_overlap=false", "no-overlap-p2p-communication=true", IN, NULL, false},
    {"stack.pipeline.p2p_overlap=*", "", OUT, NULL, false},
    {0},
};
