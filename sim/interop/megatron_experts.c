/* Megatron-LM's flags for how experts get their tokens and run. What is left out says something, too: tokens are then
 * gathered, each expert's products are calls of their own, and nothing of it is fused.
 *
 * Sources: NVIDIA/Megatron-LM megatron/training/arguments.py and megatron/core/transformer/transformer_config.py at
 * 000c4ac (moe_token_dispatcher_type: allgather unless said; __post_init__: what needs what).
 * [1] megatron/core/transformer/moe/token_dispatcher.py, _DeepepManager and _HybridEPManager: rows are sent by kernels
 *     of DeepEP, which tell the host how many have come. deepseek-ai/DeepEP docs/Hybrid-EP_Implementation.md, chapter
 *     8: as DeepEP, between GPUs of the same index and then inside nodes.
 * [2] megatron/core/transformer/moe/experts.py: SequentialMLP, or TEGroupedMLP with --moe-grouped-gemm. */
#include "interop/inside.h"

#define ROWS_ONCE    "stack.tokens_cross_once=true; stack.device_dispatch_domain=2; stack.device_dispatch_reads=true; "
#define DEEP_EP      ROWS_ONCE "stack.device_dispatch_waits=true; stack.device_dispatcher=deepep"
#define HYBRID_EP    ROWS_ONCE "stack.device_dispatcher=hybridep"
#define FLEX         "moe-token-dispatcher-type=flex; "
#define BY_HYBRID_EP FLEX "moe-flex-dispatcher-backend=hybridep"
#define BY_DEEP_EP   FLEX "moe-enable-deepep=true"
#define ONCE         "DeepEP and HybridEP send a token once to a node: set stack.tokens_cross_once=true"
#define SIZES        "the host waits for the sizes of experts' products: set stack.device_dispatch_reads=true"
#define BY_HOST      "stack.tokens_cross_once=false; stack.device_dispatch_domain=0"

const dts_mapping dts_megatron_expert_rules[] = {
    /* [1] */
    IN(HYBRID_EP, BY_HYBRID_EP),
    IN(DEEP_EP, FLEX "moe-flex-dispatcher-backend=deepep; moe-enable-deepep=true"),
    IN(DEEP_EP, BY_DEEP_EP),
    IN(DEEP_EP, FLEX "moe-flex-dispatcher-backend=deepep"),
    IN(DEEP_EP, "moe-token-dispatcher-type=flex"),
    IN(BY_HOST, "moe-token-dispatcher-type=alltoall"),
    IN(BY_HOST, "moe-token-dispatcher-type=alltoall_seq"),
    IN(BY_HOST "; plan.gathers_tokens=true", "moe-token-dispatcher-type=allgather; num-experts=*"),
    IN(BY_HOST "; plan.gathers_tokens=default", "num-experts=*"),
    OUT("plan.dispatcher=alltoall; model.capacity_factor=*", "moe-token-dispatcher-type=alltoall"),
    OUT("plan.dispatcher=alltoall; stack.tokens_cross_once=true; plan.expert_nodes=1",
        "moe-token-dispatcher-type=alltoall"),
    OUT("plan.dispatcher=alltoall; stack.tokens_cross_once=true", BY_DEEP_EP),
    OUT("plan.dispatcher=alltoall", "moe-token-dispatcher-type=alltoall"),
    OUT("plan.dispatcher=hybridep", BY_HYBRID_EP),
    OUT("plan.dispatcher=deepep", BY_DEEP_EP),
    /* what they do that was not simulated, or not so */
    OUT("stack.tokens_cross_once=*; plan.expert_nodes=1", ""),
    NEAREST("stack.tokens_cross_once=true; plan.dispatcher=alltoall", "",
            "all-to-alls send a token to a node for each of its experts there: DeepEP, which does not, is nearest"),
    NEAREST("stack.tokens_cross_once=false; plan.dispatcher=hybridep", "", ONCE),
    NEAREST("stack.tokens_cross_once=false; plan.dispatcher=deepep", "", ONCE),
    OUT("stack.tokens_cross_once=*", ""),
    NEAREST("stack.device_dispatch_waits=false; plan.dispatcher=deepep", "",
            "DeepEP's host waits for the counts of rows before they are sent: set stack.device_dispatch_waits=true"),
    OUT("stack.device_dispatch_waits=*", ""),
    NEAREST("stack.device_dispatch_reads=false; plan.dispatcher=hybridep; stack.experts=streams", "", SIZES),
    NEAREST("stack.device_dispatch_reads=false; plan.dispatcher=hybridep; stack.experts=sequential", "", SIZES),
    OUT("stack.device_dispatch_reads=*", ""),
    OUT("stack.experts_sms=0", ""), /* what the dispatcher's own default is was not asked */
    OUT("stack.experts_sms=@; plan.dispatcher=hybridep", "moe-hybridep-num-sms=@"),
    OUT("stack.experts_sms=@; plan.dispatcher=deepep", "moe-deepep-num-sms=@"),
    OUT("stack.experts_sms=*", ""),
    IN("stack.experts_sms=@", "moe-flex-dispatcher-backend=hybridep; moe-hybridep-num-sms=@"),
    IN("stack.experts_sms=@", "moe-token-dispatcher-type=flex; moe-deepep-num-sms=@"),
    OUT("stack.experts=sequential", ""), /* [2] */
    OUT("stack.experts=streams; model.experts=*", "moe-grouped-gemm=true"),
    IN("stack.experts=streams", "num-experts=*; moe-grouped-gemm=true"),
    IN("stack.experts=sequential", "num-experts=*"),
    NEAREST("stack.experts=grouped; model.experts=*", "moe-grouped-gemm=true",
            "Transformer Engine runs a rank's experts on four streams, which is nearest"),
    OUT("stack.experts=*", ""),
    OUT("stack.fuse.permute=true; model.experts=*", "moe-permute-fusion=true"),
    OUT("stack.fuse.permute=*", ""),
    IN("stack.fuse.permute=true", "num-experts=*; moe-permute-fusion=true"),
    IN("stack.fuse.permute=false", "num-experts=*"),
    /* transformer_config.py, __post_init__: with that dispatcher only */
    OUT("stack.shared_expert_overlap=true; model.shared_expert_ffn_hidden=*; plan.dispatcher=alltoall",
        "moe-shared-expert-overlap=true"),
    IN("stack.shared_expert_overlap=true", "moe-shared-expert-intermediate-size=*; moe-shared-expert-overlap=true"),
    IN("stack.shared_expert_overlap=false", "moe-shared-expert-intermediate-size=*"),
    OUT("stack.shared_expert_overlap=*", ""),
    {0},
};
