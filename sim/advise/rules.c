/* The rules of thumb, as they were published.
 *
 * [1] Hugging Face, "Efficient Training on Multiple GPUs" (Transformers documentation, v4.4x), section "Scalability
 *     strategy": the decision tree. It calls NVLink and NVSwitch fast. It names no speed for a network between nodes;
 *     400 Gbit/s per node is what [2] asks for ("Such large models require either a faster network (400 Gbps+) …").
 * [2] Li et al., "PyTorch Data Parallel Best Practices on Google Cloud" (PyTorch blog, March 2022): the three
 *     recommendations at the head of the post; its boundary of amortised communication overhead is 20 ms per sample. */
#include "advise/advise.h"

const double dts_fast_network_Bps = 50e9;
const double dts_high_aco_ms = 20;

const char *const dts_family_names[DTS_FAMILY_COUNT + 1] = {
    [DTS_FAMILY_DDP] = "DDP",      [DTS_FAMILY_ZERO] = "ZeRO",   [DTS_FAMILY_PIPELINE] = "PP+DP",
    [DTS_FAMILY_TENSOR] = "TP+DP", [DTS_FAMILY_3D] = "PP+TP+DP", [DTS_FAMILY_3D_ZERO] = "PP+TP+ZeRO-1",
    [DTS_FAMILY_OWN] = "own plan",
};

enum {
    DDP = 1U << DTS_FAMILY_DDP,
    ZERO = 1U << DTS_FAMILY_ZERO,
    PIPELINE = 1U << DTS_FAMILY_PIPELINE,
    TENSOR = 1U << DTS_FAMILY_TENSOR,
    THREE = 1U << DTS_FAMILY_3D,
    THREE_ZERO = 1U << DTS_FAMILY_3D_ZERO
};

static bool always(const dts_facts *f) {
    (void)f;
    return true;
}

static bool one_gpu(const dts_facts *f) {
    return f->gpus == 1;
}

static bool one_node_fits(const dts_facts *f) {
    return f->nodes == 1 && f->fits_one_gpu;
}

static bool one_node_large_layer(const dts_facts *f) {
    return f->nodes == 1 && !f->largest_layer_fits;
}

static bool one_node_fast(const dts_facts *f) {
    return f->nodes == 1 && f->fast_inside;
}

static bool one_node(const dts_facts *f) {
    return f->nodes == 1;
}

static bool fast_between(const dts_facts *f) {
    return f->fast_between;
}

static bool short_of_memory(const dts_facts *f) {
    return !f->fits_one_gpu;
}

static const dts_branch tree[] = {
    {"one GPU", "nothing to distribute: the methods of a single GPU", one_gpu, 0, false},
    {"one node, the model fits one GPU", "DDP, or ZeRO", one_node_fits, DDP | ZERO, false},
    {"one node, the largest layer does not fit one GPU", "TP, or ZeRO with the methods of a single GPU",
     one_node_large_layer, ZERO | TENSOR, false},
    {"one node with fast links, the model does not fit one GPU", "PP, ZeRO or TP: they perform alike", one_node_fast,
     PIPELINE | ZERO | TENSOR, true},
    {"one node without fast links, the model does not fit one GPU", "PP: faster than TP or ZeRO", one_node, PIPELINE,
     false},
    {"several nodes, fast network", "ZeRO, or PP+TP+DP", fast_between, ZERO | THREE, false},
    {"several nodes, slow network, short of memory", "DP+PP+TP+ZeRO", short_of_memory, THREE_ZERO, false},
    {"several nodes, slow network, the model fits one GPU", "no branch: the tree asks for large models only", always, 0,
     false},
};

static bool low_and_small(const dts_facts *f) {
    return !f->high_aco && f->parameters < 3e9;
}

static bool high_and_below_10b(const dts_facts *f) {
    return f->high_aco && f->parameters < 10e9;
}

static const dts_branch study[] = {
    {"one GPU", "nothing to distribute", one_gpu, 0, false},
    {"low communication overhead, below 3 billion parameters", "DDP", low_and_small, DDP, false},
    {"high communication overhead, below 10 billion parameters", "PP+DP (PDP)", high_and_below_10b, PIPELINE, false},
    {"the remaining cases", "FSDP (ZeRO)", always, ZERO, false},
};

const dts_rule_book dts_rule_books[DTS_BOOK_COUNT] = {
    [DTS_BOOK_TREE] = {"decision tree", "Hugging Face, Efficient Training on Multiple GPUs", tree,
                       sizeof tree / sizeof tree[0]},
    [DTS_BOOK_STUDY] = {"best practices", "Li et al., PyTorch Data Parallel Best Practices on Google Cloud, 2022",
                        study, sizeof study / sizeof study[0]},
};

const dts_branch *dts_rule_book_branch(const dts_rule_book *book, const dts_facts *facts) {
    size_t i = 0;
    while (!book->branches[i].holds(facts)) {
        i++;
    }
    return &book->branches[i];
}
