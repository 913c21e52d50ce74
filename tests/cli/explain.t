% Explaining a scenario. Numbers are watched by tests/unit/run/test_explain.c.
$ dtsim explain gcp-data-parallel/scaling-pdp --width 120 | grep -vE '^  ' | sed 's/[0-9.][0-9.]*/#/g'
scaling-pdp: # ms an iteration

What limits this plan, and what would help

Where the time goes on the critical path's GPU (stage #; sums to the iteration)

Critical path: each task held up the next one (sums to the iteration)

Kernels of stage # (wave: what idle multiprocessors of the last wave cost)

Transfers (ranks/nodes of the group; alone: on idle links; mean: as simulated)

Memory of the fullest GPU at its peak: # of # GiB

What if (each simulated again)

How sure that is
$ dtsim explain gcp-data-parallel/scaling-pdp --width 120 | sed -n '/^What if/,/^$/p' | cut -c1-54
What if (each simulated again)
  what if                   changed                   
  FLOP/s of the GPU         +10 %                     
  GPU memory bandwidth      +10 %                     
  GPU memory size           +10 %                     
  links inside a node       +10 %                     
  network between nodes     +10 %                     
  latency of transfers      / 1.1                     
  host link (PCIe)          +10 %                     
  host memory bandwidth     +10 %                     
  launch cost of kernels    / 1.1                     
  other work of the host    / 1.1                     
  shortest kernel           / 1.1                     
  larger microbatches       training.micro_batch=16   
  smaller microbatches      training.micro_batch=4    
  a larger batch            training.global_batch=256 
  no recomputation          training.recompute=none   
  selective recomputation   training.recompute=selecti
  larger tensor groups      parallelism.tensor=2      
  longer pipelines          parallelism.pipeline=4 ins
  shorter pipelines         parallelism.pipeline=1 ins
  more chunks a stage       parallelism.virtual_stages
  sharded optimizer states  parallelism.data_parallel=
$ dtsim explain gcp-data-parallel/scaling-pdp --rows 1 | grep -c 'more rows'
3
$ dtsim explain gcp-data-parallel/scaling-pdp --no-what-if | grep -c 'What'
0
[1]
% What run warns of, explain does, too: in all its forms.
$ dtsim explain gcp-data-parallel/scaling-ddp --set model=gpt2 --no-what-if --width 400 | sed -n '/^Warnings/,/^$/p'
Warnings
  ! model.vocab 50257 is no multiple of 64: with 50304 all kernels together would take 9 % less time
$ dtsim explain gcp-data-parallel/scaling-ddp --set model=gpt2 --no-what-if --format json | grep -c 'vocab 50257 is no multiple'
1
$ dtsim explain gcp-data-parallel/scaling-ddp --set model=gpt2 --no-what-if --html page.html >/dev/null; grep -c 'vocab 50257 is no multiple' page.html
1
$ dtsim explain gcp-data-parallel/scaling-ddp --set parallelism.schedule=gpipe --no-what-if >/dev/null
--set: warning: the schedule does nothing: there is no pipeline
  help: set parallelism.pipeline, too
% Larger microbatches than the batch divides by are not named; neighbours that are legal and faster are.
$ dtsim explain gcp-data-parallel/scaling-ddp --width 400 | grep -oE 'parallelism.(tensor|pipeline)=2( inside nodes)? gives|room for larger|`dtsim search`'
parallelism.tensor=2 gives
`dtsim search`
% Outputs that a pipeline keeps are told apart.
$ dtsim explain planning/llama-3-8b --set cluster.nodes=1 --set training.sequence_length=4096 --set training.global_batch=128 --set parallelism.pipeline=4 --set parallelism.data=2 --set parallelism.data_parallel=ddp --no-what-if | grep -oE '^ *(activations|kept outputs) +[0-9.]+'
  activations      4.00
  kept outputs   125.25
% The same bytes whatever the number of threads, and in ASCII nothing but ASCII.
$ for n in 1 3; do dtsim explain gcp-data-parallel/scaling-ddp --threads $n --format json | cksum; done | sort -u | wc -l
1
$ dtsim explain gcp-data-parallel/scaling-pdp --charset ascii | LC_ALL=C grep -c '[^ -~]'
0
[1]
$ dtsim explain gcp-data-parallel/scaling-pdp --inputs --width 200 | grep -oE '^ *(device memory|inside a node) *cluster.(gpu.memory_bandwidth|intra.base_latency) '
  device memory  cluster.gpu.memory_bandwidth 
  inside a node  cluster.intra.base_latency 
$ dtsim explain gcp-data-parallel/scaling-pdp --format json | tr -d '\t' | grep -oE '^"(critical_path|kernels|transfers|memory_terms|what_if|inputs|advice)"'
"advice"
"critical_path"
"kernels"
"transfers"
"memory_terms"
"what_if"
"inputs"
% Wrong usage.
$ dtsim explain
error: no scenario given
  help: `dtsim list scenarios` names those that come along
[2]
$ dtsim explain a.yaml b.yaml
error: unexpected argument 'b.yaml'
  help: one scenario at a time; `dtsim compare` takes several
[2]
$ dtsim explain a.yaml
error: no file and no scenario 'a.yaml'
  help: `dtsim list scenarios` names those that come along
[3]
$ dtsim explain gcp-data-parallel/scaling-pdp --rows -1
error: --rows: -1 is out of bounds
  help: from 0 to 100000
[2]
$ dtsim explain gcp-data-parallel/scaling-pdp --set cluster.nodez=1
--set: error: unknown key 'nodez' [cluster]
  help: did you mean 'nodes'?
[1]
% A row of a table of measurements.
$ printf 'id,model,cluster,stack,training.global_batch,training.micro_batch,training.sequence_length,training.precision,training.optimizer,measured.iteration_s\na 1,mingpt-large,gcp-a2-highgpu-8g,pytorch-1.11,64,8,256,fp16,sgd,0.4\n' >g.csv
$ dtsim explain 'g.csv#a 1' --no-what-if | head -1 | sed 's/[0-9.][0-9.]* ms/#/'
a 1: # an iteration
$ dtsim run 'g.csv#a 1' --set name=other | head -1
other
$ dtsim sweep 'g.csv#a 1' --vary training.micro_batch=4,8 --format csv | cut -d, -f1-2 | head -3
training.micro_batch,outcome
4,simulated
8,simulated
$ dtsim search 'g.csv#a 1' --simulate 4 | grep -A1 'dtsim run'
The first again: dtsim run 'g.csv#a 1' \
    --set parallelism.data=8 \
$ dtsim search 'g.csv#a 1' --simulate 4 --set training.precision=bf16 --export deepspeed 2>/dev/null | grep -A1 bf16
	"bf16":	{
		"enabled":	true
$ dtsim search 'g.csv#a 1' --tokens 1e9 --simulate 2 >/dev/null
$ dtsim advise 'g.csv#a 1' --set training.global_batch=128 | head -2
mingpt-large (834 million parameters) on 8 × A100-SXM4-40GB, 128 samples of
  256 tokens a step
$ dtsim advise 'g.csv#a 3'
error: no row 'a 3' in g.csv
  help: did you mean 'a 1'?
[1]
$ dtsim run 'g.csv#a 2'
error: no row 'a 2' in g.csv
  help: did you mean 'a 1'?
[1]
$ dtsim run 'h.csv#a 1'
error: cannot read h.csv: No such file or directory
  help: name a CSV file; published tables lie in scenarios/published/
[3]
% The same as a web page.
$ dtsim explain gcp-data-parallel/scaling-ddp --no-what-if --html page.html >/dev/null; grep '<h2>' page.html | sed 's/: [0-9].* GiB//'; grep -cE 'https?:|<script' page.html
<h2>Where the time goes on the critical path's GPU (stage 0; sums to the iteration)</h2>
<h2>Critical path: each task held up the next one (sums to the iteration)</h2>
<h2>Kernels of stage 0 (wave: what idle multiprocessors of the last wave cost)</h2>
<h2>Transfers (ranks/nodes of the group; alone: on idle links; mean: as simulated)</h2>
<h2>Memory of the fullest GPU at its peak</h2>
<h2>How sure that is</h2>
0
[1]
% Names are whole in narrow windows too, and no line is wider than the window.
$ dtsim explain pipelines/zbv --width 80 | sed -n '/^What if/,$p' | grep -A1 'GPU memory'
  GPU memory         +10 %                877.5 ms   -0.9 %     +0.9 %  19.1 GiB
    bandwidth
  GPU memory size    +10 %                885.5 ms   +0.0 %     +0.0 %  19.1 GiB
  links inside a     +10 %                885.5 ms   +0.0 %     +0.0 %  19.1 GiB
$ for width in 40 80 100 130; do dtsim explain pipelines/zbv --width $width | sed 's/·/-/g' | awk -v w=$width 'length > w'; done
% What stands in backticks is code in a page.
$ dtsim explain gcp-data-parallel/scaling-pdp --html advice.html >advice.txt; grep -o '<code>dtsim search</code>' advice.html; grep -c '`' advice.html
<code>dtsim search</code>
0
[1]
% A message on its way is in the network, on no stream.
$ printf 'model: {profile: gpt2-xl, layers: 8}\ncluster: {profile: dgx-a100-80gb, nodes: 2, gpus_per_node: 1, inter: {hop_latency: 20 ms}}\nstack: {profile: megatron-core, pipeline: {p2p_overlap: true}}\ntraining: {global_batch: 4, micro_batch: 1, sequence_length: 1024, precision: bf16}\nparallelism: {pipeline: 2}\n' >far.yaml; dtsim explain far.yaml | grep -o 'on the way.*network'
on the way             comm   network
% A whole run, by the option of run.
$ dtsim explain gcp-data-parallel/scaling-ddp --no-what-if --tokens 1B | sed -nE 's/[0-9.,]+ (h|USD)/N \1/g; /^  Whole/p'; dtsim explain gcp-data-parallel/scaling-ddp --tokens 0
  Whole run: 1.00 billion tokens in N h for N USD
error: --tokens: must be above 0, got 0
  help: for instance --tokens 300B
[2]
