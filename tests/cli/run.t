% Simulating scenarios. Numbers are left out: tests/validation and tests/property watch those.
$ dtsim run gcp-data-parallel/scaling-pdp --width 120 | cut -c1-23 | grep -E '^(  )?[A-Za-z]' | tr -d '0-9,'
scaling-pdp
  Model                
  Cluster              
  Plan                 
  Batch                
  Iteration time       
  Likely               
  Per GPU              
  Communication (ACO)  
  Price                
  Peak memory          
  Bottleneck           
Where the time goes (GP
  compute              
  exposed communication
  pipeline bubble      
  waiting for the host 
  optimizer            
Memory of the fullest G
  parameters           
  gradients            
  activations          
  temporary            
  allocator's reserve  
  CUDA context         
Communication of one GP
  operation   group    
  all-reduce  data     
  send-recv   pipeline 
Pipeline stages
  stage  layers   param
  bubble mean of the s
Simulated  tasks
$ dtsim run gcp-data-parallel/scaling-pdp --timeline --charset ascii | grep -c '^stage'
2
$ dtsim run gcp-data-parallel/scaling-pdp --timeline --from "10 ms" --to "20 ms" --width 60 | grep '^Timeline'
Timeline  10.00 ms to 20.00 ms, one column is 384.6 us
$ dtsim run gcp-data-parallel/scaling-pdp --from "9 h" 2>&1 | sed 's/takes.*/takes/'
error: the asked part of the timeline is empty: the iteration takes
  help: --from lies before --to, and both inside the iteration
$ dtsim run gcp-data-parallel/scaling-ddp --format csv | head -1
scenario,model,cluster,stack,plan,gpus,nodes,global_batch,micro_batch,microbatches,sequence_length,parameters,trainable_parameters,iteration_time_s,likely.low_s,likely.high_s,likely.fit_share,samples_per_s,tokens_per_s,tokens_per_s_per_gpu,model_tflops_per_gpu,mfu,hfu,aco_ms_per_sample,exposed_aco_ms_per_sample,bubble_fraction,fits,capacity_gib,peak_allocated_gib,peak_reserved_gib,peak_device_gib,host_peak_gib,host_capacity_gib,nvme_peak_gib,nvme_capacity_gib,memory_gib.parameters,memory_gib.gradients,memory_gib.optimizer,memory_gib.activations,memory_gib.temporary,memory_gib.communication,memory_gib.context,memory_gib.fragmentation,allocator.retries,allocator.calls,allocator.stall_s,allocator.cost_s,allocator.unserved_gib,time_s.compute,time_s.exposed_communication,time_s.bubble,time_s.exposed_offload,time_s.host_bound,time_s.optimizer,time_s.input_wait,ranks.count,ranks.critical,ranks.least_busy,ranks.critical_busy_s,ranks.least_busy_s,bottleneck,verdict,price_usd_per_hour,whole_run.goodput,whole_run.training_share,whole_run.checkpoints_share,whole_run.lost_work_share,whole_run.restarts_share,whole_run.mtbf_s,whole_run.checkpoint_B,whole_run.checkpoint_s,whole_run.write_s,whole_run.interval_s,whole_run.interval_iterations,whole_run.restart_s,whole_run.tokens,whole_run.ideal_s,whole_run.expected_s,whole_run.failures,whole_run.usd,simulation.events,simulation.tasks,simulation.detail,simulation.network,simulation.ranks,simulation.seed,simulation.microbatches
$ dtsim run gcp-data-parallel/scaling-ddp --format csv | wc -l
2
$ dtsim run gcp-data-parallel/scaling-ddp --format json | grep -E '"(scenario|gpus|fits)":'
	"scenario":	"scaling-ddp",
	"gpus":	16,
	"fits":	true,
% Retries of the caching allocator are no compute, whatever takes longer.
$ printf 'model: llama-3-8b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: torchtitan\ntraining: {global_batch: 8, micro_batch: 1, sequence_length: 8128, precision: bf16, optimizer: adamw}\nparallelism: {data_parallel: fsdp}\n' >near.yaml; dtsim run near.yaml | sed -n '/Peak memory/,/^$/p'
  Peak memory           78.7 of 79.6 GiB █████████████████████████▊ fits, but
                        2 allocator retries cost 46 % of the iteration. What
                        helps, simulated:
    training.recompute=selective (43.0 GiB, +66 % tokens/s);
    parallelism.context=2 (47.9 GiB, +55 % tokens/s);
    parallelism.tensor=2 (55.0 GiB, +54 % tokens/s).
  Room                  tensors leave 4.5 GiB; in 8 of 10 published runs
                        predictions were no more too low
  Bottleneck            memory near the GPU's capacity: the GPU waits for
                        retries of the caching allocator (46 % of the iteration)
$ dtsim run near.yaml | grep -A4 Warnings
Warnings
  ! cudaMalloc fails 2 times in every iteration: each time the caching allocator
    waits for the GPU, gives back all that it has cached, and asks for it anew,
    7712 calls in all (num_alloc_retries of torch.cuda.memory_stats counts the
    failures)
$ dtsim run near.yaml --format json | grep -E '"(retries|bottleneck|verdict)"' | head -3
		"retries":	2,
	"bottleneck":	"memory near the GPU's capacity: the GPU waits for retries of the caching allocator (46 % of the iteration)",
	"verdict":	"fits, but 2 allocator retries cost 46 % of the iteration",
$ dtsim run gcp-data-parallel/scaling-ddp --format json | grep -c wall_s
0
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --format json --wall-time | grep -c wall_s
1
$ dtsim run gcp-data-parallel/scaling-ddp --trace t.json -o page.txt && head -c 60 t.json && wc -l <page.txt
{"displayTimeUnit":"ms","otherData":{"generator":"dtsim","sc35
$ dtsim run $DATA/scenarios/gcp-data-parallel/scaling-ddp.yaml --set name=other | head -1
other
$ dtsim run gcp-data-parallel/scaling-pdp --html p.html -o page.txt && grep -c '<svg' p.html
1
% Does not fit is a result; --check makes it an exit code.
$ dtsim run gcp-data-parallel/limit-ddp --set model=mingpt-13b -o page.txt; grep -c 'DOES NOT FIT' page.txt
1
$ dtsim run gcp-data-parallel/limit-ddp --set model=mingpt-13b --check -o page.txt
[4]
% What helps is simulated, but where nobody asked for it or there is no place for it: then only the run itself is.
$ dtsim run gcp-data-parallel/limit-ddp --set model=mingpt-13b --format json | grep -cE '"(change|fit_share)":' | awk '{ print ($1 > 2 ? "some" : "none") }'
some
$ dtsim run gcp-data-parallel/limit-ddp --set model=mingpt-13b --format json --no-hints | grep -A1 -E '"cures"'
	"cures":	[],
	"other_trainings":	[],
$ dtsim run gcp-data-parallel/limit-ddp --set model=mingpt-13b --no-hints | grep -c -E 'DOES NOT FIT|What helps'
1
$ dtsim run gcp-data-parallel/scaling-ddp --check -o page.txt
% Colour only where it is wanted.
$ dtsim run gcp-data-parallel/scaling-ddp | grep -c $'\033'
0
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --color always | grep -q $'\033' && echo coloured
coloured
% Each hop to a file of its own. The document loads again, and so does the scenario; the last task ends the iteration.
$ dtsim run gcp-data-parallel/scaling-ddp --set training.micro_batch=4 --dump hops >printed.txt; ls hops
1-document.yaml
2-scenario.yaml
3-graph.csv
4-result.json
$ grep -E 'micro_batch|^ *profile|^ *nodes|^stack' hops/1-document.yaml | sed 's|# .*/|# |'
  profile: gcp-a2-highgpu-8g  # scaling-ddp.yaml:7
  nodes: 2  # scaling-ddp.yaml:7
stack: pytorch-1.11  # scaling-ddp.yaml:8
  micro_batch: 4  # --set
$ grep -E '^ *(micro_batch|memory_bandwidth):' hops/2-scenario.yaml | grep -oE '(micro_batch: 4 .*|memory_bandwidth: [0-9]* GB/s)'
memory_bandwidth: 1555 GB/s
memory_bandwidth: 280 GB/s
micro_batch: 4  # --set
$ head -1 hops/3-graph.csv; awk -F, 'NR > 1 && NF != 14 && !/"/ { bad++ } END { print bad + 0 }' hops/3-graph.csv
task,name,role,device,streams,microbatch,layer,fixed_s,work_B,flops,waits_for,start_ps,end_ps,held_up_by
0
$ dtsim run hops/2-scenario.yaml --format json | diff - hops/4-result.json && echo same
same
$ dtsim run hops/1-document.yaml --format json | diff - hops/4-result.json && echo same
same
$ last=$(tail -n +2 hops/3-graph.csv | grep -oE ',[0-9]+,[0-9]+,[0-9]*$' | cut -d, -f3 | sort -n | tail -1); tr -d '\t,' <hops/4-result.json | awk -F: -v ps=$last '$1 == "\"iteration_time_s\"" { d = $2 - ps / 1e12; print (d * d < 1e-18 ? "same" : "off by " d) }'
same
% So they do where a setting replaced a plain value, where a base had another form, and where files are named by relative paths.
$ dtsim run gcp-data-parallel/scaling-ddp --set training.recompute.every=3 --dump every >/dev/null; grep -A1 'recompute:' every/1-document.yaml; for f in every/[12]*.yaml; do dtsim run $f --format json | cmp - every/4-result.json && echo same; done
  recompute:
    every: 3  # --set
same
same
$ mkdir own; cp $DATA/models/mingpt-large.yaml own/m.yaml; printf "extends: $DATA/scenarios/gcp-data-parallel/scaling-ddp.yaml\n" >own/base.yaml; printf 'model: {profile: ./m.yaml, layers: 12}\ntraining: {recompute: {every: 2}}\n' >>own/base.yaml; printf 'extends: ./base.yaml\ntraining: {recompute: {first: 3}}\n' >own/s.yaml; dtsim run own/s.yaml --dump deep >/dev/null; grep -A1 'recompute:' deep/1-document.yaml | sed 's/ *#.*//'; for f in deep/[12]*.yaml; do dtsim run $f --format json | cmp - deep/4-result.json && echo same; done
  recompute:
    first: 3
same
same
$ dtsim run pipelines/own-order --dump order >/dev/null; for f in order/[12]*.yaml; do dtsim run $f --format json | cmp - order/4-result.json && echo same; done
same
same
% What merely looks like a path stays as it is, whatever lies beside the scenario.
$ mkdir gpt3-1.3b 0.015; touch run.1; printf "extends: $DATA/scenarios/gcp-data-parallel/scaling-ddp.yaml\nname: run.1\nmodel: gpt3-1.3b\ncluster: {gpu: {spread: 0.015}}\n" >look.yaml; dtsim run look.yaml --dump look >/dev/null; grep -hE '^ *(name|model|spread):' look/1-document.yaml | sed 's/ *#.*//'
name: run.1
model: gpt3-1.3b
    spread: 0.015
$ for f in look/[12]*.yaml; do dtsim run $f --format json | cmp - look/4-result.json && echo same; done
same
same
$ dtsim run gcp-data-parallel/scaling-ddp --dump printed.txt
error: cannot write printed.txt: Not a directory
  help: a part of the path is a file, not a folder
[3]
% a row of a table: what is wrong is said with the table's own line and column
$ printf 'id,model,cluster.profile,training.global_batch,training.micro_batch,measured.iteration_s\na,gpt,dgx-a100-80gb,8,x4,1\n' >bad.csv; dtsim run bad.csv#a
bad.csv:2:3: error: missing key 'layers' in profile 'gpt' [model]
      2 | a,gpt,dgx-a100-80gb,8,x4,1
        |   ^
  help: add 'model.layers' here, or 'layers' in $DATA/models/gpt.yaml: transformer layers
bad.csv:2:3: error: missing key 'hidden' in profile 'gpt' [model]
      2 | a,gpt,dgx-a100-80gb,8,x4,1
        |   ^
  help: add 'model.hidden' here, or 'hidden' in $DATA/models/gpt.yaml: width of the residual stream
bad.csv:2:3: error: missing key 'heads' in profile 'gpt' [model]
      2 | a,gpt,dgx-a100-80gb,8,x4,1
        |   ^
  help: add 'model.heads' here, or 'heads' in $DATA/models/gpt.yaml: attention heads of the queries
bad.csv:2:3: error: missing key 'vocab' in profile 'gpt' [model]
      2 | a,gpt,dgx-a100-80gb,8,x4,1
        |   ^
  help: add 'model.vocab' here, or 'vocab' in $DATA/models/gpt.yaml: rows of the token embedding, padding included
bad.csv:2:23: error: expected a whole number, got 'x4' [training.micro_batch]
      2 | a,gpt,dgx-a100-80gb,8,x4,1
        |                       ^
  help: write a whole number such as 8
bad.csv:2:21: error: missing key 'sequence_length' [training]
      2 | a,gpt,dgx-a100-80gb,8,x4,1
        |                     ^
  help: add 'sequence_length': tokens per sample
bad.csv:2:1: error: missing key 'stack'
  help: add 'stack': software stack profile; `dtsim list stacks`
[1]
% a whole run: what failures and checkpoints make of it
$ dtsim run gcp-data-parallel/scaling-ddp --tokens 1e9 --set cluster.mtbf=never | sed -n '/Whole run/,/^$/p' | sed -E 's/in .*//; s/ +[0-9.]+ (h|min|days) / /'
Whole run: 1.00 billion tokens 
$ dtsim run inference/llama-3-8b-prefill --tokens 1e9 | sed -n '/Whole run/,/^$/p' | sed -E 's/in .*//'
Whole run: 1.00 billion tokens 
  What it costs takes cluster.price, the USD per hour of a node.
$ dtsim run inference/llama-3-8b-prefill --set training.mode=eval
--set: error: unknown value 'eval' [training.mode]
  help: write inference; allowed are train, inference, decode
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --tokens 1e9 --set cluster.mtbf=1s --set cluster.restart_time=1e9s | sed -n '/Whole run/,/^$/p'
Whole run: 1.00 billion tokens are never reached: failures undo the work faster than it is done
  A failure every 0.062 s. A checkpoint of 1.55 GiB every 1.1 s (1 iteration)
  holds up 1.7 s; a restart takes 31.7 years.
$ dtsim run gcp-data-parallel/scaling-ddp --tokens lots
--tokens: error: expected a count, got 'lots' [training.tokens]
  help: write a count such as 300e9 or 300B
[1]
% A key of its own makes no other one of the same map vanish.
$ dtsim run fine-tuning/lora-8b --set training.adapters.dropout=0.1
--set: error: unknown key 'dropout' [training.adapters]
  help: did you mean 'lora.dropout'?
[1]
% A recomputation replaces that of a base whole, in files and with --set; two at once contradict each other
$ printf 'extends: %s/scenarios/pipelines/1f1b.yaml\ntraining: {recompute: {every: 2}}\n' $DATA >every.yaml; printf 'extends: ./every.yaml\ntraining: {recompute: {modules: [layernorm]}}\n' >modules.yaml; for s in './every.yaml' './modules.yaml' './modules.yaml --set training.recompute.first=3' './modules.yaml --set training.recompute=full' './every.yaml --set training.recompute.modules=layernorm'; do DTSIM_DATA=$DATA dtsim show $s | grep -A 1 '  recompute:'; done; DTSIM_DATA=$DATA dtsim run ./modules.yaml --set training.recompute.first=3 --set training.recompute.every=2
  recompute: {every: 2}
  adapters: none
  recompute: {modules: [layernorm]}
  adapters: none
  recompute: {first: 3}
  adapters: none
  recompute: full
  adapters: none
  recompute: {modules: layernorm}
  adapters: none
--set: error: 'first' beside 'every': a recomputation is one of them [training.recompute]
  help: write none, selective, full, except-last, sqrt, {every: 2}, {first: 4} or {modules: [core_attn]}
[1]
$ dtsim run pipelines/1f1b --set training.recompute.first=3 --set training.recompute=full
--set: error: training.recompute.first=3 beside training.recompute=full: a recomputation is one of them [training.recompute]
  help: leave one of them out
[1]
$ dtsim show pipelines/1f1b --set training.recompute=none --set training.recompute=full | grep '  recompute:'
  recompute: full
% A GPU of another kind than the profile's is named, and the profile's price is not its own.
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.gpu=h100 --width 120 | grep -E '^  (Cluster|Price)'
  Cluster               16 GPUs: 2 nodes of GCP a2-highgpu-8g with H100-SXM5-80GB; PyTorch 1.11, eager
$ dtsim run gcp-data-parallel/scaling-ddp --set 'cluster.gpu={profile: h100, memory: 60 GiB}' --set 'cluster.price=3 USD/h' --set cluster.name=mine --width 120 | grep -E '^  (Cluster|Price)' | sed 's/h .*/h/'
  Cluster               16 GPUs: 2 nodes of mine; PyTorch
  Price                 6.00 USD/h
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.gpu=h100 --format json | grep -E '"(cluster|price.*)"'
	"cluster":	"GCP a2-highgpu-8g with H100-SXM5-80GB",
	"price_usd_per_hour":	0,
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.gpu=a100-40gb --set 'cluster.gpu.memory=30 GiB' --width 120 | grep -E '^  (Cluster|Price)' | sed 's/h .*/h/'
  Cluster               16 GPUs: 2 nodes of GCP a2-highgpu-8g; PyTorch
  Price                 58.78 USD/h
% A plain name drops what the scenario said beside it, and says so; what other --set said is the user's own.
$ dtsim run fine-tuning/lora-8b --set cluster=dgx-h100 --width 120 2>&1 | grep -E 'Cluster|set|help'
  Cluster               8 GPUs: 1 node of DGX H100; PyTorch 2, eager
--set: warning: cluster=dgx-h100 replaces the scenario's nodes, gpus_per_node
  help: cluster.profile=dgx-h100 keeps them
$ dtsim run fine-tuning/lora-8b --set cluster=dgx-h100 --set cluster.nodes=2 --set cluster.gpus_per_node=2 2>&1 >/dev/null
$ dtsim run fine-tuning/lora-8b --set cluster.profile=dgx-h100 --width 120 2>&1 | grep -E 'Cluster|set|help'
  Cluster               1 GPU: 1 node of DGX H100; PyTorch 2, eager
% A checkpoint that the run does not live to see.
$ dtsim run fine-tuning/lora-8b --set training.tokens=1e6 --set training.checkpoint_interval='30 d' --width 120 | grep 'the run takes'
  ! the run takes 0.0715 h, and a checkpoint is written every 720 h: there is none before it ends
% The bubble of all stages, beside that of one GPU.
$ dtsim run pipelines/1f1b | grep -c 'bubble, mean of the stages [0-9.]* %; of the GPU on the critical path [0-9.]* %'
1
$ dtsim run pipelines/1f1b --html page.html >page.txt; grep -c 'bubble, mean of the stages' page.html
1
% One colour means one thing in both kinds of pictures: forward, backward, its half of the weights.
$ dtsim schedule zb-h1 --stages 4 --microbatches 8 --html orders.html >orders.txt; for c in 0072B2 E69F00 009E73; do grep -q "fill=\"#$c" orders.html && grep -q ":#$c;" page.html && echo $c; done
0072B2
E69F00
009E73
% Set, but of no use.
$ dtsim run gcp-data-parallel/scaling-ddp --set parallelism.schedule=zbv 2>&1 >/dev/null
--set: warning: the schedule does nothing: there is no pipeline
  help: set parallelism.pipeline, too
% Rates that nobody measured are said to be estimates.
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.profile=rtx-4090-pcie-8 --set cluster.nodes=1 --set parallelism.data=8 --width 200 | grep estimated
  ! rates of the RTX-4090-24GB are estimated: products from one burst of square ones, attention from other GPUs' share of them
% Where only the nodes are too small, scripts can tell, too.
$ printf 'model: gpt3-175b\ncluster: {profile: dgx-h100, nodes: 1}\nstack: deepspeed\ntraining: {precision: bf16, global_batch: 64, micro_batch: 1, sequence_length: 2048, recompute: full}\nparallelism: {data_parallel: zero3}\noffload: {optimizer: cpu}\n' >hosts.yaml; dtsim run hosts.yaml --format json | grep host_short; dtsim run pipelines/1f1b --format json | grep host_short
	"host_short":	"offload.parameters=cpu",
	"host_short":	null,
% No money is told for a plan that does not fit.
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.gpu.memory=4GB --tokens 1e12 --html small.html | grep -E 'Price|Whole' | sed -E 's/in [0-9].*/in/; s/[0-9.]+ USD/USD/'
  Price                 USD/h      no price of tokens: it does not fit
Whole run, if it did fit: 1.00 trillion tokens in
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.gpu.memory=4GB --tokens 1e12 | grep -c 'takes cluster.price'
0
[1]
$ grep -c 'Price of' small.html; grep -c 'Whole run, if it did fit' small.html
0
1
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.gpu.memory=4GB --tokens 1e12 --format json | grep '"usd"'
		"usd":	0
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary cluster.gpu.memory=4GB,40GB --format json | grep usd_per_billion | sed -E 's/[1-9][0-9.]+/N/'
			"usd_per_billion_tokens":	0,
			"usd_per_billion_tokens":	N,
% How much of a plan takes measured times is said, and a file of which nothing is taken.
$ H=kind,variant,dtype,a,b,c,d,seconds; printf "$H\ncollective,all-reduce,fp16,1048576,8,1,,0.0001\n" >other.csv; printf "$H\ncollective,all-reduce,fp16,1048576,16,2,,0.0011\ngemm,forward,fp16,1,2048,1536,6144,0.0002\n" >right.csv; sed '$d' right.csv >groups.csv
$ dtsim run scaling-ddp --width 160 --set cluster.measured=./other.csv | grep -i measured
  Measured              times of 0 of 1 kinds of collectives
  ! cluster.measured has no time that this plan takes: it has all-reduce of 16 ranks on 2 nodes
$ dtsim run scaling-ddp --width 160 --set cluster.measured=./right.csv --set cluster.gpu.measured=./right.csv | grep -i measured
  Measured              times of 2 of 25 kinds of products and attention, of 1 of 1 kinds of collectives
$ dtsim run scaling-ddp --width 160 --set cluster.gpu.measured=./right.csv --set training.precision=bf16 | grep -i measured
  Measured              times of 0 of 25 kinds of products and attention
  ! gpu.measured has no time that this plan takes: no product or attention of its shapes, formats and directions; `dtsim explain` shows those
$ dtsim explain scaling-ddp --no-what-if --set cluster.measured=./other.csv | grep Measured
  Measured: times of 0 of 1 kinds of collectives
$ dtsim run scaling-ddp --set cluster.measured=./right.csv --html page.html >/dev/null; grep -c '<p>Measured: times of 1 of 1 kinds' page.html
1
$ dtsim run scaling-ddp --set cluster.gpu.measured=./groups.csv
./groups.csv:1:1: error: no times of products or attention in this file [cluster.gpu.measured]
      1 | kind,variant,dtype,a,b,c,d,seconds
        | ^
  help: rows of kinds gemm and attention-flash are taken; collectives are for the cluster's `measured`
[1]
% Keys of experts that a dense model does not have.
$ dtsim run scaling-ddp --width 160 --set model.router_z_loss=true --set model.load_imbalance=2 --set model.router_bias=true --set model.capacity_factor=2 | grep experts
  ! router_bias is about experts, but the model has none: it does nothing here
  ! router_z_loss is about experts, but the model has none: it does nothing here
  ! capacity_factor is about experts, but the model has none: it does nothing here
  ! load_imbalance is about experts, but the model has none: it does nothing here
$ dtsim run experts/mixtral-2-dgx --width 160 --set model.router_z_loss=true | grep -c 'is about experts'
0
[1]
% What is trained beside which base.
$ dtsim run fine-tuning/lora-8b --width 120 --set training.adapters.lora.base=gptq --html page.html | sed -n 2p
  Model                 llama-3-8b, 8.03 billion parameters, 41.9 million trained (LoRA of rank 16, base gptq)
$ grep -o '[0-9.]* million trained (.*), on' page.html
41.9 million trained (LoRA of rank 16, base gptq), on
$ dtsim run fine-tuning/lora-8b --width 120 | sed -n 2p
  Model                 llama-3-8b, 8.03 billion parameters, 41.9 million trained (LoRA of rank 16)
% GPUs that are rented and not used; a price of single ones; stages that follow from the GPU count.
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.nodes=1 --set cluster.gpus_per_node=1 --set training.global_batch=16 | grep Price
  Price                 29.39 USD/h      338.17 USD per billion tokens  7 GPUs idle in it
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.nodes=1 --set cluster.gpus_per_node=3 --set cluster.price_gpus=2 --set 'cluster.price=5 USD/h' --set training.global_batch=48 | grep Price
  Price                 10.00 USD/h      40.73 USD per billion tokens  1 GPU idle in it
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.nodes=1 --set cluster.gpus_per_node=3 --set cluster.price_gpus=1 --set 'cluster.price=5 USD/h' --set training.global_batch=48 | grep Price
  Price                 15.00 USD/h      61.10 USD per billion tokens
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.nodes=1 --set parallelism.data=4 --width 200 2>&1 | grep -i 'left out'
  ! parallelism.pipeline is left out, so it follows from the GPU count: 2 stages, since data 4 × tensor 1 × context 1 use only 4 of 8 GPUs; leave data out instead for more replicas
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.nodes=1 --set training.precision=fp4
--set: error: unknown value 'fp4' [training.precision]
  help: write nvfp4: the products of 4 bits that are simulated; allowed are fp32, tf32, fp16, bf16, amp-fp16, amp-bf16, fp8, mxfp8, nvfp4, amp-fp8
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --tokens 15.6T | grep '^Whole run'
Whole run: 15.6 trillion tokens in 16.8 years for 8,651,010 USD
% Nothing makes it fit its GPU: another training does.
$ dtsim run fine-tuning/lora-8b --set training.adapters=none --set model=llama-3-70b --width 150 >qlora.txt; grep -A1 'Another training' qlora.txt; dtsim run fine-tuning/lora-8b --set training.adapters=none --set model=llama-3-70b --format json | grep -A2 other_trainings
    Another training fits these GPUs: 'training.adapters={lora: {rank: 16, targets: all-linear, base: nf4}}' (56.5 GiB, +17 % tokens/s).
  Bottleneck            compute (99 % of the iteration)
	"other_trainings":	[{
			"change":	"training.adapters={lora: {rank: 16, targets: all-linear, base: nf4}}",
			"fits":	true,
% A whole run of less than one batch is a mistake.
$ dtsim run planning/llama-3-8b --tokens 100 2>&1 >/dev/null; dtsim run planning/llama-3-8b --set training.tokens=1M 2>&1 >/dev/null
warning: a whole run of 100 tokens is less than one global batch, of 8388608 [training.tokens]
  help: count all tokens of the run, with a unit such as M, B or T: did you mean 100B?
warning: a whole run of 1000000 tokens is less than one global batch, of 8388608 [training.tokens]
  help: count all tokens of the run, with a unit such as M, B or T
