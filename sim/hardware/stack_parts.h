/* Groups of keys of a stack (stack_parts.c, stack_optimizer.c), for the schema of the whole (stack_schema.c). */
#ifndef DTS_HARDWARE_STACK_PARTS_H
#define DTS_HARDWARE_STACK_PARTS_H

#include "hardware/hardware.h"

extern const dts_schema dts_stack_fuse_schema, dts_stack_bert_schema, dts_stack_ddp_schema, dts_stack_fp8_schema,
    dts_stack_user_buffers_schema, dts_stack_ring_attention_schema, dts_stack_fsdp_schema, dts_stack_pipeline_schema,
    dts_stack_optimizer_schema, dts_stack_allocator_schema;

/* Are the modules that graphs hold known, and do they go together (stack_graphs.c)? */
dts_status dts_stack_check_graphs(dts_binder *binder, const dts_node *node, const dts_stack *stack);

#endif
