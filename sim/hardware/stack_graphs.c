/* Which modules of a layer CUDA graphs hold, where not all of it: the words of Megatron-Core's --cuda-graph-modules
 * (--cuda-graph-scope before), NVIDIA/Megatron-LM docs/user-guide/features/cuda_graph.md. Of its words mamba is left
 * out: no such layers are simulated. */
#include <string.h>

#include "base/excerpt.h"
#include "hardware/stack_parts.h"

const char *const dts_graph_module_names[DTS_GRAPH_MODULE_COUNT + 1] = {"attn",           "mlp", "moe", "moe_router",
                                                                        "moe_preprocess", NULL};

/* The next of the words of an item, which may hold several as a flag of Megatron-LM does; 0: there is none. */
static size_t next_word(const char **word) {
    *word += strspn(*word, " ");
    return strcspn(*word, " ");
}

static int module_of(const char *word, size_t length) {
    for (int i = 0; i < DTS_GRAPH_MODULE_COUNT; i++) {
        if (strlen(dts_graph_module_names[i]) == length && memcmp(word, dts_graph_module_names[i], length) == 0) {
            return i;
        }
    }
    return -1;
}

bool dts_stack_captures(const dts_stack *stack, dts_graph_module module) {
    const char *const *items = stack->graph_modules.items;
    bool captured = false;
    for (size_t i = 0; i < stack->graph_modules.count; i++) {
        const char *word = items[i];
        for (size_t length = 0; (length = next_word(&word)) > 0; word += length) {
            captured |= module_of(word, length) == (int)module;
        }
    }
    return captured;
}

bool dts_stack_captures_modules(const dts_stack *stack) {
    return stack->cuda_graphs == DTS_GRAPHS_LAYERS && stack->graph_modules.count > 0;
}

bool dts_stack_captures_all(const dts_stack *stack) {
    return stack->cuda_graphs != DTS_GRAPHS_NONE && !dts_stack_captures_modules(stack);
}

/* Megatron-Core takes neither of the two last (transformer_config.py, __post_init__). */
static const char *wrong_company(const dts_stack *stack) {
    const bool router = dts_stack_captures(stack, DTS_GRAPH_MOE_ROUTER);
    return dts_stack_captures(stack, DTS_GRAPH_MOE_PREPROCESS) && !router
               ? "moe_preprocess goes with moe_router only, behind which it stands"
           : dts_stack_captures(stack, DTS_GRAPH_MOE) && router ? "moe holds what moe_router does: name one of them"
                                                                : NULL;
}

dts_status dts_stack_check_graphs(dts_binder *binder, const dts_node *node, const dts_stack *stack) {
    static const char key[] = "stack.cuda_graph_modules", help[] = "write attn, mlp, moe, moe_router or moe_preprocess";
    const dts_node *list = node == NULL ? NULL : dts_node_get(node, "cuda_graph_modules");
    const dts_place *place = list == NULL ? NULL : &list->place;
    const char *const *items = stack->graph_modules.items;
    dts_status status = DTS_OK;
    for (size_t i = 0; i < stack->graph_modules.count; i++) {
        const char *word = items[i];
        if (next_word(&word) == 0) {
            status = dts_diag_error(binder->diag, place, key, help, "one of the modules has no name");
        }
        for (size_t length = 0; (length = next_word(&word)) > 0; word += length) {
            if (module_of(word, length) < 0) {
                status = dts_diag_error(binder->diag, place, key, help, "'%s' is no module that a CUDA graph may hold",
                                        dts_excerpt_of_bytes(word, length).text);
            }
        }
    }
    const char *wrong = wrong_company(stack);
    return wrong == NULL ? status : dts_diag_error(binder->diag, place, key, help, "%s", wrong);
}
