% Which strategy is the fastest that fits, over two axes.
$ printf 'model: {profile: gpt2}\ncluster: {profile: gcp-a2-highgpu-8g, nodes: 2}\nstack: pytorch-1.11\ntraining: {global_batch: 128, micro_batch: 8, sequence_length: 256, precision: fp16, optimizer: sgd}\nparallelism: {data_parallel: ddp}\n' >whole.yaml; sed 's/data_parallel: ddp/data_parallel: fsdp/' whole.yaml >sharded.yaml
$ dtsim map whole.yaml sharded.yaml --down model=gpt2,gpt2-large --across cluster.nodes/training.global_batch=1/64,2/128 --best-of training.recompute=none,full
Cluster: GCP a2-highgpu-8g; batch: samples of 256 tokens
The fastest that fits. Down: model; across: cluster.nodes/training.global_batch

              1/64          2/128
  gpt2        whole +103 %  whole +70 %
  gpt2-large  whole +120 %  whole +94 %

whole is first in 4, sharded 0 of 4 cells.
+: throughput over that of the next; ~: less than 3 % apart; -: none fits.
$ dtsim map A=whole.yaml B=sharded.yaml --down model=gpt2,mingpt-34b --across cluster.nodes=1,2 --panels training.micro_batch=4,8 --set training.recompute=full --width 40
Cluster: GCP a2-highgpu-8g; batch: 128
samples of 256 tokens
The fastest that fits. Down: model;
across: cluster.nodes

training.micro_batch=4
              1         2
  gpt2        A +145 %  A +161 %
  mingpt-34b  B         B

training.micro_batch=8
              1         2
  gpt2        A +120 %  A +73 %
  mingpt-34b  B         B

A is first in 4, B 4 of 8 cells.
+: throughput over that of the next; ~:
less than 3 % apart; -: none fits.
$ dtsim map A=whole.yaml B=sharded.yaml --down model=gpt2,mingpt-34b --across cluster.nodes=1,2 --threads 1 --format json >one.json; dtsim map A=whole.yaml B=sharded.yaml --down model=gpt2,mingpt-34b --across cluster.nodes=1,2 --threads 3 --format json | cmp - one.json; grep -cE '"winner":.*("A"|null)' one.json
4
$ dtsim map '<A&B>=whole.yaml' B=sharded.yaml --down model=gpt2 --across cluster.nodes=1,2 --format svg | grep -E 'svg|&' | cut -c1-60
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 688 308
<g><title>&lt;A&amp;B&gt;: 291,587 tokens/s; B: 114,486 toke
<text x="147" y="133" text-anchor="middle" font-size="18" fo
<g><title>&lt;A&amp;B&gt;: 179,010 tokens/s; B: 105,090 toke
<text x="271" y="133" text-anchor="middle" font-size="18" fo
<text x="78" y="233" text-anchor="start" font-size="16" font
</svg>
% The page says once what the picture shows, and of what; the picture alone has its own heading.
$ dtsim map whole.yaml sharded.yaml --down training.sequence_length=128,256 --across training.global_batch=64,128 --set model=gpt2 --format svg --html page.html 2>/dev/null | grep -c 'fastest strategy'; grep -c 'fastest strategy' page.html; grep -oE '(Model|Down)[^.]*' page.html
1
2
Model: gpt2; cluster: 2 × GCP a2-highgpu-8g</p>
Down: training
% Joined keys in a sweep.
$ dtsim sweep whole.yaml --vary cluster.nodes/cluster.gpus_per_node=1/8,4/2 --set training.global_batch=64 --format csv | cut -d, -f1-5
cluster.nodes/cluster.gpus_per_node,outcome,plan,gpus,iteration_time_s
1/8,simulated,ddp 8,8,0.075682
4/2,simulated,ddp 8,8,0.228059606843
% Wrong usage.
$ dtsim map whole.yaml --down model=gpt2 --across cluster.nodes=1,2
error: a map needs two scenarios or more
  help: name a scenario for each strategy
[2]
$ dtsim map whole.yaml sharded.yaml --down model=gpt2
error: a map needs --across and --down
  help: for instance --down model=gpt2,gpt2-xl --across training.micro_batch=1,2,4
[2]
$ dtsim map whole.yaml whole.yaml
error: two strategies are called 'whole'
  help: name them: NAME=SCENARIO
[2]
$ dtsim map a-name-of-more-than-thirty-six-characters=gcp-data-parallel/scaling-ddp gcp-data-parallel/scaling-pdp --down cluster.nodes=1,2 --across training.micro_batch=1,2
error: a cell of the map has no room for 'a-name-of-more-than-thirty-six-characters'
  help: give it a short one: NAME=SCENARIO
[2]
$ dtsim map whole.yaml sharded.yaml --down model=gpt2 --across model=gpt2
error: --across: 'model' is varied already
  help: vary another key
[2]
$ dtsim map whole.yaml sharded.yaml --down model=gpt2 --down model=gpt2-xl
error: --down stands there twice
  help: give all values at once, with commas
[2]
$ dtsim map whole.yaml sharded.yaml --down model/cluster.nodes=gpt2/1,gpt2-xl --across training.micro_batch=1,2
error: --down: 'gpt2-xl' is not a value for each key of 'model/cluster.nodes'
  help: join as many values as keys: --down cluster.nodes/cluster.gpus_per_node=1/8,4/2
[2]
$ dtsim map whole.yaml no-such --down model=gpt2 --across cluster.nodes=1,2
error: no file and no scenario 'no-such'
  help: `dtsim list scenarios` names those that come along
[3]
$ dtsim map whole.yaml sharded.yaml --down model=gpt2 --across cluster.node=1,2
--across: error: unknown key 'node' [cluster.node]
  help: did you mean 'nodes'?
[2]
% What may run out of memory is marked, as everywhere.
$ S=gcp-data-parallel; dtsim map pdp=$S/network-pdp fsdp=$S/network-fsdp --down model=mingpt-16b --across training.global_batch/training.micro_batch=64/8,1024/128 --set training.recompute=full | sed -n '5,$p'
              64/8      1024/128
  mingpt-16b  fsdp      fsdp?

pdp is first in 0, fsdp 2 of 2 cells.
+: throughput over that of the next; ~: less than 3 % apart; -: none fits.
? may run out of memory: live tensors fit, but what the caching allocator has
free lies in pieces, and in its replay a request for 1.27 GiB fails even after a
retry; the time is that of a GPU with enough memory. More recomputation, a
smaller micro-batch where it is above 1, or, for a pipeline's outputs,
stack.pipeline.keeps_outputs=none leaves room; expandable segments
(stack.allocator.expandable), where they are off, leave fewer pieces.
$ S=gcp-data-parallel; dtsim map pdp=$S/network-pdp fsdp=$S/network-fsdp --down model=mingpt-16b --across training.global_batch/training.micro_batch=64/8,1024/128 --set training.recompute=full --format svg | grep -o '[a-z:; ?()]*[?(][a-z :?)]*[<]'
s (may run out of memory)<
fsdp?<
 ahead; ?: may run out of memory<
% Columns that have no room stand below, and no line is wider than the window.
$ dtsim map pipeline-of-two=whole.yaml sharded-and-deep=sharded.yaml --down model=gpt2 --across training.global_batch=64..448+64 --width 80 >map.txt; cat map.txt; awk 'length($0) > 80' map.txt
Cluster: 2 × GCP a2-highgpu-8g; batch: samples of 256 tokens
The fastest that fits. Down: model; across: training.global_batch

        64               128              192              256
  gpt2  x                pipeline-of-two  x                pipeline-of-two

        320              384              448
  gpt2  x                pipeline-of-two  x

pipeline-of-two is first in 3, sharded-and-deep 0 of 7 cells.
~: less than 3 % apart; -: none fits; x: none is legal.
$ dtsim map A=whole.yaml B=sharded.yaml --down model=gpt2 --across cluster.nodes=1,2 --html page.html >/dev/null; grep -oE '<h1>[^<]*|A is first.*cells|>nodes that|>cluster.nodes<' page.html; grep -c '<title>A: ' page.html
<h1>The fastest strategy that fits
>cluster.nodes<
A is first in 2, B 0 of 2 cells
2
