/* Megatron-LM's flags for what our stacks say: which kernels are fused, what runs beside what. A script that leaves
 * such a flag out says something, too.
 *
 * Sources: NVIDIA/Megatron-LM megatron/training/arguments.py at 000c4ac (validate_args: what needs what) and
 * [1] megatron/core/distributed/distributed_data_parallel.py: without overlap_grad_reduce there is one bucket. */
#include "interop/inside.h"

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
    BOTH("stack.attention=materialised", "attention-backend=unfused"),
    BOTH("stack.attention=flash; stack.cudnn_attention=false", "attention-backend=flash"),
    IN("stack.attention=flash; stack.cudnn_attention=true", "attention-backend=fused"),
    OUT("stack.attention=flash", ""), /* auto takes cuDNN's where it is faster */
    OUT("stack.cudnn_attention=*", ""),
    OUT("stack.aiter_attention=*", ""), /* variables of Transformer Engine's environment */
    OUT("stack.fuse.loss=true", FUSED),
    IN("stack.fuse.loss=true", "cross-entropy-loss-fusion=true"),
    BOTH("stack.fuse.loss=false", ""),
    OUT("stack.fuse.bias_gelu=false; model.gated_ffn=true", "no-bias-swiglu-fusion=true"),
    OUT("stack.fuse.bias_gelu=false", "no-bias-gelu-fusion=true"),
    IN("stack.fuse.bias_gelu=false", "swiglu=true; no-bias-swiglu-fusion=true"),
    IN("stack.fuse.bias_gelu=false", "no-bias-gelu-fusion=true"),
    OUT("stack.fuse.bias_gelu=true", ""),
    BOTH("stack.fuse.bias_dropout_add=false", "no-bias-dropout-fusion=true"),
    OUT("stack.fuse.bias_dropout_add=true", ""),
    BOTH("stack.fuse.softmax=false", "no-masked-softmax-fusion=true"),
    OUT("stack.fuse.softmax=true", ""),
    OUT("stack.fuse.rotary=false; model.rotary=true", "no-rope-fusion=true"),
    IN("stack.fuse.rotary=false", "no-rope-fusion=true"),
    OUT("stack.fuse.rotary=*", ""),
    /* arguments.py: --use-torch-fsdp2 has no buffer that products of weights could add to */
    NEAREST("stack.accumulate_kernel=false; parallelism.data_parallel=fsdp", "no-gradient-accumulation-fusion=true",
            "--use-torch-fsdp2 adds gradients with a kernel of its own: set stack.accumulate_kernel=true"),
    BOTH("stack.accumulate_kernel=true", "no-gradient-accumulation-fusion=true"),
    OUT("stack.accumulate_kernel=*", ""),
    OUT("stack.fp32_gradients=false; training.precision=fp16", ""),
    OUT("stack.fp32_gradients=false; training.precision=fp32", ""),
    BOTH("stack.fp32_gradients=false", "grad-reduce-in-bf16=true"),
    OUT("stack.fp32_gradients=true; training.precision=fp32", ""),
    OUT("stack.fp32_gradients=true", "accumulate-allreduce-grads-in-fp32=true"),
    OUT("stack.fp32_gradients=bf16", ""),
    /* arguments.py turns it on for bf16 only */
    IN("stack.fp32_gradients=true", "fp16=true; accumulate-allreduce-grads-in-fp32=true"),
    IN("stack.fp32_gradients=false", "fp16=true"),
    BOTH("stack.optimizer.gradient_clipping=false", "clip-grad=0"),
    IN("stack.optimizer.gradient_clipping=false", "clip-grad=0.0"),
    IN("stack.optimizer.gradient_clipping=true", "clip-grad=*"),
    OUT("stack.optimizer.gradient_clipping=true", ""),
    IN("stack.ddp.overlap=true", "overlap-grad-reduce=true"),
    IN("stack.ddp.overlap=true", "use-megatron-fsdp=true"),
    IN("stack.ddp.overlap=true", "use-torch-fsdp2=true"),
    IN("stack.ddp.overlap=false; stack.ddp.bucket=1 TB; stack.ddp.first_bucket=1 TB", ""), /* [1] */
    OUT("plan.bucket_elements=@; plan.reduces_beside=true", "ddp-bucket-size=@"),
    IN("plan.bucket_elements=@", "overlap-grad-reduce=true; ddp-bucket-size=@"),
    BOTH("stack.fp8.activation_input=true", "activation-func-fp8-input-store=true"),
    OUT("stack.fp8.primary_weights=true; training.precision=fp8; stack.fp8.recipe=delayed", NARROW),
    /* arguments.py: the two beside each other take that recipe */
    NEAREST(BF16_GATHER "; training.precision=fp8", "", NEEDS_DELAYED),
    NEAREST(BF16_GATHER "; training.precision=amp-fp8", "", NEEDS_DELAYED),
    NEAREST(BF16_GATHER "; training.precision=mxfp8", "", NEEDS_DELAYED),
    OUT("stack.fp8.primary_weights=true; training.precision=fp8", NARROW),
    OUT("stack.fp8.primary_weights=true; training.precision=amp-fp8", NARROW),
    OUT("stack.fp8.primary_weights=true; training.precision=mxfp8", NARROW),
    IN("stack.fp8.primary_weights=true", "fp8-format=*; fp8-param-gather=true"),
    IN("stack.fp8.primary_weights=false", "fp8-format=*"),
    OUT("stack.fp8.primary_weights=*", ""),
    OUT("stack.cuda_graphs=layers; stack.cuda_graph_modules=[]", "cuda-graph-impl=local"),
    REFUSED(MODULES "; training.recompute=full", NO_FULL),
    OUT(MODULES, "cuda-graph-impl=transformer_engine; cuda-graph-scope=@"),
    OUT("stack.cuda_graphs=layers", "cuda-graph-impl=local"),
    OUT("stack.cuda_graphs=iteration",
        "cuda-graph-impl=local; cuda-graph-scope=full_iteration; no-check-for-nan-in-loss-and-grad=true"),
    OUT("stack.cuda_graphs=none", ""),
    OUT("stack.cuda_graph_modules=*", ""),
    /* docs/user-guide/features/cuda_graph.md: --cuda-graph-modules since the autumn of 2025, --cuda-graph-scope before,
     * with "full" for all of a layer */
    IN("stack.cuda_graphs=iteration", "cuda-graph-impl=full_iteration"),
    IN("stack.cuda_graphs=iteration", "cuda-graph-impl=local; cuda-graph-scope=full_iteration"),
    IN("stack.cuda_graphs=iteration", "enable-cuda-graph=true; cuda-graph-scope=full_iteration"),
    IN("stack.cuda_graphs=layers", "cuda-graph-impl=*; cuda-graph-scope=full"),
    IN("stack.cuda_graphs=layers", "enable-cuda-graph=true; cuda-graph-scope=full"),
    IN("stack.cuda_graphs=layers", "external-cuda-graph=true; cuda-graph-scope=full"),
    IN(MODULES, "cuda-graph-impl=transformer_engine; cuda-graph-scope=@"),
    IN(MODULES, "cuda-graph-impl=transformer_engine; cuda-graph-modules=@"),
    IN(MODULES, "cuda-graph-impl=local; cuda-graph-scope=@"),
    IN(MODULES, "cuda-graph-impl=local; cuda-graph-modules=@"),
    /* arguments.py: the names of the two implementations before --cuda-graph-impl */
    IN(MODULES, "enable-cuda-graph=true; cuda-graph-scope=@"),
    IN(MODULES, "external-cuda-graph=true; cuda-graph-scope=@"),
    IN("stack.cuda_graphs=layers", "enable-cuda-graph=true"),
    IN("stack.cuda_graphs=layers", "external-cuda-graph=true"),
    IN("stack.cuda_graphs=layers", "cuda-graph-impl=transformer_engine"),
    IN("stack.cuda_graphs=layers", "cuda-graph-impl=local"),
    IN("stack.cuda_graphs=none", "cuda-graph-impl=none"),
    OUT("stack.pipeline.p2p_overlap=false; plan.interleaved=true", "no-overlap-p2p-communication=true"),
    IN("stack.pipeline.p2p_overlap=false", "no-overlap-p2p-communication=true"),
    OUT("stack.pipeline.p2p_overlap=*", ""),
    {0},
};
