% Advice; times are left out.
$ printf 'model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000}\ncluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 4}\nstack: megatron-lm\ntraining: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: bf16}\n' >small.yaml
$ dtsim advise small.yaml --width 120 | sed -E 's/[0-9][0-9.,]*/N/g; s/ +/ /g' | grep -E '^[A-Z]| (yes|no|low|high) |^ (decision|best|microbatch|recomp|offload)'
What decides
 fits one GPU yes N GiB with one sample (N recomputed) of N
 largest layer fits one GPU yes N GiB on the fullest GPU of a stage a layer
 fast links inside a node yes NVLink or NVSwitch
 communication of DDP low N ms per sample (high: above N)
The best plan of each family, simulated
 PP+TP+ZeRO-N no such plan
Rules of thumb
 decision tree: one node, the model fits one GPU: DDP, or ZeRO. Simulation agrees: ZeRO is first.
 best practices: low communication overhead, below N billion parameters: DDP. Simulation disagrees: DDP takes N %
The first plan (ZeRO), one choice changed at a time
 microbatch: the largest microbatch that fits. N: N ms, N GiB; N: N ms, N GiB; N: N ms, N GiB. The
 recomputation: recompute only what memory asks for. full: N ms, N GiB; selective: N ms, N GiB; none:
 offload: offload only what memory asks for. optimizer, gradients: N ms, N GiB; optimizer: N ms, N GiB;
$ dtsim advise small.yaml --threads 1 --format json >one.json; dtsim advise small.yaml --threads 3 --format json | cmp - one.json; grep -E '"best"|"agrees"|fits_one' one.json
		"fits_one_gpu":	true,
	"best":	"ZeRO",
			"agrees":	true,
			"agrees":	false,
$ dtsim advise small.yaml --set model.hidden=49152 --set model.heads=128 --set model.layers=48 >big.txt; echo $?; grep -E 'Nothing|none of' big.txt
4
    with the methods of a single GPU. In simulation none of its plans fits.
  best practices: the remaining cases: FSDP (ZeRO). In simulation none of its
Nothing that was simulated fits: more GPUs, larger ones, or a smaller batch.
$ dtsim advise small.yaml --set cluster.gpus_per_node=1 --width 120 | grep -cE 'no such plan|nothing to distribute'
7
% Clusters without a network between nodes, and one GPU: there is nothing to join, and advice all the same.
$ for c in rtx-3090-nvlink-2 rtx-4090-pcie-8 lambda-8x-h100-80gb a100-40gb-single; do dtsim advise small.yaml --set cluster.profile=$c --set cluster.gpus_per_node=1 --format json | grep -cE '"largest_layer_fits":.true|"fits_one_gpu":.true'; done
2
2
2
2
% One process drives a pipeline: it lies inside a node, and is a plan.
$ dtsim advise gcp-data-parallel/network-ddp --width 120 | grep -cE 'PP\+DP  .*pipeline 2 \(.*inside nodes'
1
% Wrong usage.
$ dtsim advise
error: no scenario given
  help: `dtsim list scenarios` names those that come along
[2]
$ dtsim advise small.yaml small.yaml
error: unexpected argument 'small.yaml'
  help: one scenario at a time
[2]
$ dtsim advise operators/alexnet-16
error: a graph of operators has no layers to lay out
  help: `dtsim search` cuts its operators
[1]
% The page says what the text says.
$ dtsim advise small.yaml --html page.html >text; grep -oE '<h[12]>[^<(]*' page.html; grep -oE '^  (decision tree|best practices): [a-z ]*' text | cut -c3- | grep -Fc -f - page.html; grep -c '<tr>' page.html
<h1>Which strategy
<h2>What decides
<h2>The best plan of each family, simulated
<h2>Rules of thumb
<h2>The first plan 
2
13
$ dtsim advise small.yaml --html ''
error: --html: the name is empty
  help: name a file, or - for standard output
[2]
