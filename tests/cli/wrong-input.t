% Wrong scenarios: places, keys and ways out as the command shows them; tests/golden/malformed has many more. Exit code
% 1, or 3 when a file cannot be read.
$ dtsim run no-such-scenario
error: no file and no scenario 'no-such-scenario'
  help: `dtsim list scenarios` names those that come along
[3]
$ dtsim run gcp-data-parallel/scaling-dpd
error: no file and no scenario 'gcp-data-parallel/scaling-dpd'
  help: did you mean 'gcp-data-parallel/scaling-ddp'? `dtsim list scenarios` names those that come along
[3]
% What is there and cannot be read is not what is not there. A pipe among the scenarios is none, and holds nobody up.
$ ln -s circle.yaml circle.yaml; dtsim run circle.yaml
error: cannot read 'circle.yaml': Too many levels of symbolic links
[3]
$ dtsim show circle.yaml
error: cannot read 'circle.yaml': Too many levels of symbolic links
[3]
$ mkdir -p data/scenarios; mkfifo data/scenarios/pipe.yaml; DTSIM_DATA=data timeout 60 dtsim list scenarios | grep -cE '^ *pipe( |$)'
0
[1]
$ DTSIM_DATA=data timeout 60 dtsim run pipe
error: cannot read data/scenarios/pipe.yaml: it is no regular file
  help: a scenario is a YAML or JSON file
[3]
% Names that would be code elsewhere. What is far too long loses its middle.
$ printf 'name: "x\\ntouch PWNED\\n#"\nmodel: gpt2\n' >lines.yaml; dtsim run lines.yaml 2>&1 | head -4
lines.yaml:1:7: error: a line break, "\n", in text of one line [name]
      1 | name: "x\ntouch PWNED\n#"
        |       ^
  help: write it in one line
$ dtsim run scaling-ddp --set name='"a\e[31m"'
--set: error: a control character, "\u001b", in text [name]
  help: leave it out
[1]
$ dtsim run $'a\e[31m\nerror: b'
error: no file and no scenario 'a?[31m error: b'
  help: `dtsim list scenarios` names those that come along
[3]
$ dtsim run scaling-ddp --set "$(printf 'a%.0s' {1..100000})=1" 2>&1 | wc -c | sed 's/^[0-9]\{1,4\}$/thousands/'
thousands
% A pipe does not say how much it holds: it is read to its end, or to the limit.
$ { dtsim show scaling-ddp; seq -f '# remark %g' 2000; } >long.yaml; dtsim run <(cat long.yaml) --format csv | cut -d, -f2- | cmp - <(dtsim run long.yaml --format csv | cut -d, -f2-)
$ dtsim run <(seq -f '# remark %g' 400000) 2>&1 | cut -d: -f2-
 error: the file is larger than 4194304 bytes
% The folder of a scenario may be left out where that names one.
$ dtsim run scaling-ddp --format csv | cmp - <(dtsim run gcp-data-parallel/scaling-ddp --format csv)
$ dtsim show scaling-ddp | head -1
name: scaling-ddp
$ dtsim run scaling-dpd
error: no file and no scenario 'scaling-dpd'
  help: did you mean 'gcp-data-parallel/scaling-ddp'? `dtsim list scenarios` names those that come along
[3]
$ printf 'model: gpt2\n' >job.yaml; dtsim run job
error: no file and no scenario 'job'
  help: did you mean 'job.yaml'? `dtsim list scenarios` names those that come along
[3]
$ dtsim run job.yml
error: no file and no scenario 'job.yml'
  help: did you mean 'job.yaml'? `dtsim list scenarios` names those that come along
[3]
$ dtsim run jbo.yml; mkdir -p deep; cp job.yaml deep/; dtsim run deep/jib.yaml
error: no file and no scenario 'jbo.yml'
  help: did you mean 'job.yaml'? `dtsim list scenarios` names those that come along
error: no file and no scenario 'deep/jib.yaml'
  help: did you mean 'deep/job.yaml'? `dtsim list scenarios` names those that come along
[3]
$ mkdir jo.yaml; dtsim run joo.yaml; dtsim run ''
error: no file and no scenario 'joo.yaml'
  help: did you mean 'job.yaml'? `dtsim list scenarios` names those that come along
error: no file and no scenario ''
  help: `dtsim list scenarios` names those that come along
[3]
$ dtsim run scaling-ddp.yaml
error: no file and no scenario 'scaling-ddp.yaml'
  help: did you mean 'gcp-data-parallel/scaling-ddp'? `dtsim list scenarios` names those that come along
[3]
$ mkdir -p scenarios/a scenarios/b; touch scenarios/a/twice.yaml scenarios/b/twice.yaml; dtsim run twice; rm -r scenarios
error: 'twice' is the name of several scenarios
  help: did you mean 'a/twice' or 'b/twice'?
% A name of another kind, and a cluster that names none.
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster=a100-40gb
--set: error: 'a100-40gb' is a gpu, not a cluster [cluster]
  help: clusters with it: a100-40gb-roce-1600, a100-40gb-single, aws-p4d-24xlarge, azure-nd96asr-v4, dgx-a100-40gb, gcp-a2-highgpu-8g, ...; in another cluster write cluster.gpu: a100-40gb
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster=a100-sxm
--set: error: no profile 'a100-sxm' in hardware/clusters/ [cluster]
  help: did you mean 'a100-40gb-roce-1600', 'a100-40gb-single', 'a100-80gb-hdr100x8', 'a100-80gb-roce-1600', 'a100-80gb-roce-400', 'a100-80gb-roce-zb', ...?
[1]
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary cluster=mi300x,dgx-h100
--vary: error: 'mi300x' is a gpu, not a cluster
  help: clusters with it: azure-nd96isr-mi300x-v5, mi300x-8; in another cluster write cluster.gpu: mi300x
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set training.micro_bacth=4
--set: error: unknown key 'micro_bacth' [training]
  help: did you mean 'micro_batch'?
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set training.micro_batch=4 --set training.micro_batch=many
--set: error: expected a whole number, got 'many' [training.micro_batch]
  help: write a whole number such as 8
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set model=mingpt-huge 2>&1 | cut -c1-36
--set: error: no profile 'mingpt-hug
  help: did you mean 'mingpt-large'?
$ printf 'model: mingpt-large\nclustre: gcp-a2-highgpu-8g\n' >a.yaml; dtsim run a.yaml 2>&1 | head -4
a.yaml:2:1: error: unknown key 'clustre'
      2 | clustre: gcp-a2-highgpu-8g
        | ^
  help: did you mean 'cluster'?
$ dtsim run . 2>&1 | sed 's/:.*//'
error
  help
$ dtsim show no-such-thing
error: neither a scenario nor a profile: 'no-such-thing'
  help: `dtsim list` names all kinds
[1]
$ dtsim show h100-sxm
error: neither a scenario nor a profile: 'h100-sxm'
  help: did you mean 'h100', 'h100-80gb-pcie', 'h100-94gb-nvl', 'h100-96gb'? `dtsim list` names all kinds
[1]
$ dtsim show scaling-dpd
error: neither a scenario nor a profile: 'scaling-dpd'
  help: did you mean 'gcp-data-parallel/scaling-ddp'? `dtsim list` names all kinds
[1]
$ dtsim map scaling-ddp scaling-pdp --down model=gpt22 --across cluster.nodes=1,2
--down: error: no profile 'gpt22' in models/
  help: did you mean 'gpt2'?
[1]
$ dtsim show mingpt-larg
error: neither a scenario nor a profile: 'mingpt-larg'
  help: did you mean 'mingpt-large'? `dtsim list` names all kinds
[1]
% Options that contradict each other, change nothing or go beyond all bounds.
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary training.micro_batch=1,2 --set training.micro_batch=4
error: 'training.micro_batch' is both set and varied
  help: leave one of them out
[2]
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary training.micro_batch=999999999999..999999999999*999999999999 2>&1 | sed -n 2,3p
  help: samples per forward pass of one replica
$ dtsim compare gcp-data-parallel/scaling-ddp --with ' '
error: --with: nothing is changed
  help: write a dotted key, = and a value: --with training.micro_batch=4
[2]
$ dtsim compare gcp-data-parallel/scaling-ddp --with nonsense=1 2>&1 | head -1
--with: error: unknown key 'nonsense'
$ dtsim search gcp-data-parallel/scaling-ddp --tokens 1e9 --budget=-5
error: --budget: '-5' is not above 0
  help: write an amount such as 150k$ or "3 MUSD"
[2]
$ dtsim search gcp-data-parallel/scaling-ddp --tokens 1e300
error: --tokens: '1e300' is not at most 1e18
  help: write a number such as 300B
[2]
$ dtsim search gcp-data-parallel/scaling-ddp --tokens 1e9 --clusters mingpt-large
error: 'mingpt-large' is a model, not a cluster
  help: the key of a model is model
[1]
$ dtsim search gcp-data-parallel/scaling-ddp --tokens 1e9 --nodes 1-8
error: --nodes: '1-8' is not a range
  help: write 1..8, or 1,8
[2]
$ dtsim search gcp-data-parallel/scaling-ddp --tokens 1e9 --nodes 0,none
error: --nodes: 0 is out of bounds
  help: from 1 to 1000000
[2]
% a name that is right as far as it goes, a table for a scenario, a schedule for a profile
$ dtsim show a100
error: neither a scenario nor a profile: 'a100'
  help: did you mean 'a100-40gb'? `dtsim list` names all kinds
[1]
$ dtsim show 1f1b
error: '1f1b' is a schedule, not a profile
  help: `dtsim schedule NAME --stages 4 --microbatches 8` draws it
[1]
$ printf 'id,model\na,gpt2\n' >some.csv; dtsim run some.csv
error: 'some.csv' is a table: every row is a scenario
  help: name one: some.csv#ID; `dtsim validate some.csv` simulates all
[1]
$ dtsim run none.csv
error: no file and no scenario 'none.csv'
  help: `dtsim list scenarios` names those that come along
[3]
% Profiles where a scenario is asked for: by name, and by path, whose kind follows from its keys.
$ dtsim run llama-3-8b
error: llama-3-8b is a model, not a scenario
  help: did you mean 'planning/llama-3-8b'? `dtsim show llama-3-8b` shows it; to use it, write --set model=llama-3-8b after a scenario
[1]
$ printf 'extends: llama\nlayers: 4\nhidden: 512\nheads: 8\nffn_hidden: 1024\nvocab: 1000\n' >m.yaml; dtsim run m.yaml; dtsim search ./m.yaml 2>&1 | head -1
error: ./m.yaml is a model profile, not a scenario
  help: `dtsim show ./m.yaml` shows it; to use it, write --set model=./m.yaml after a scenario
error: ./m.yaml is a model profile, not a scenario
$ dtsim show m.yaml | grep -E '^(layers|hidden):'
layers: 4
hidden: 512
$ printf 'extends: a100-40gb\nmemory: {value: 80 GB, source: guess}\n' >g.yaml; dtsim explain g.yaml
error: ./g.yaml is a gpu profile, not a scenario
  help: `dtsim show ./g.yaml` shows it; to use it, write --set cluster.gpu=./g.yaml after a scenario
[1]
$ dtsim show g.yaml | grep '^memory:'
memory: 8e+10 B
$ printf 'extends: dgx-a100-80gb\ngpus_per_node: 4\n' >c.yaml; dtsim run c.yaml
error: ./c.yaml is a cluster profile, not a scenario
  help: `dtsim show ./c.yaml` shows it; to use it, write --set cluster=./c.yaml after a scenario
[1]
$ dtsim show c.yaml | grep gpus_per_node
gpus_per_node: 4
$ printf 'extends: pytorch-2\nlaunch: 9 us\n' >s.yaml; dtsim run s.yaml
error: ./s.yaml is a stack profile, not a scenario
  help: `dtsim show ./s.yaml` shows it; to use it, write --set stack=./s.yaml after a scenario
[1]
$ dtsim show s.yaml | grep '^launch:'
launch: 9 us
$ printf '{"model_type": "llama", "hidden_size": 512}' >config.json; dtsim run config.json
error: ./config.json is a model profile, not a scenario
  help: `dtsim show ./config.json` shows it; to use it, write --set model=./config.json after a scenario
[1]
$ dtsim show ./no-such.yaml
error: no file, no scenario and no profile './no-such.yaml'
  help: check the path; `dtsim list` names what comes along
[3]
% Tables without rows, and folders.
$ printf 'id,source,note,model,measured.iteration_s\n' >none.csv; dtsim validate none.csv
none.csv: error: the table has a header, but no rows
  help: each further line is a run, with a cell for each column
[1]
$ mkdir folder; dtsim validate folder
error: cannot read folder: Is a directory
  help: name a CSV file in it
[3]
% values that do not fit together: the one laid over the other is pointed at, the other is named
$ dtsim run gcp-data-parallel/scaling-ddp --set model.heads=7
--set: error: hidden 1536 is not a multiple of heads 7 [model.heads]
  help: choose heads that divide hidden, or give head_dim (the width of one head); hidden stands in mingpt-large.yaml:7
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set model=gpt2 --set model.hidden=770 --set model.heads=12 2>&1 | head -1
--set: error: hidden 770 is not a multiple of heads 12 [model.hidden]
% keys under other tools' names, and numbers in k
$ for set in parallelism.sequence_parallel=true parallelism.recompute=full training.grad_accum=4 training.gradient_accumulation_steps=4 training.sequence_length=8k 'training.recompute={last: 3}' 'training.recompute={frst: 3}'; do dtsim run gcp-data-parallel/scaling-ddp --set "$set" 2>&1; done
--set: error: unknown key 'sequence_parallel' [parallelism]
  help: write sequence: true, which shards activations along the sequence beside tensor
--set: error: unknown key 'recompute' [parallelism]
  help: write training.recompute
--set: error: unknown key 'grad_accum' [training]
  help: it follows: global_batch = micro_batch x accumulation x data-parallel ranks; set training.global_batch
--set: error: unknown key 'gradient_accumulation_steps' [training]
  help: it follows: global_batch = micro_batch x accumulation x data-parallel ranks; set training.global_batch
--set: error: expected a whole number, got '8k' [training.sequence_length]
  help: write the number out: 8000 or 8192
--set: error: unknown key 'last' [training.recompute]
  help: write none, selective, full, except-last, sqrt, {every: 2}, {first: 4} or {modules: [core_attn]}
--set: error: unknown key 'frst' [training.recompute]
  help: did you mean 'first'?
[1]
% What cannot be written is said before the work is done, with what helps.
$ dtsim search gcp-data-parallel/scaling-ddp --html none/page.html
error: cannot write none/page.html: No such file or directory
  help: make its folder first
[3]
$ mkdir pages; dtsim search gcp-data-parallel/scaling-ddp --html pages
error: cannot write pages: Is a directory
  help: name a file in it
[3]
$ dtsim run gcp-data-parallel/scaling-ddp --output none/out.txt
error: cannot write none/out.txt: No such file or directory
  help: make its folder first
[3]
$ : >file; dtsim run gcp-data-parallel/scaling-ddp --trace file/trace.json
error: cannot write file/trace.json: Not a directory
  help: a part of the path is a file, not a folder
[3]
$ dtsim run gcp-data-parallel/scaling-ddp --output /dev/full
error: cannot write /dev/full: No space left on device
  help: name a file on a disk that has room
[3]
$ dtsim search gcp-data-parallel/scaling-ddp -o ''
error: --output: the name is empty
  help: name a file, or - for standard output
[2]
$ dtsim run gcp-data-parallel/scaling-ddp --dump ''
error: --dump: the name is empty
  help: name a folder
[2]
$ dtsim run gcp-data-parallel/scaling-ddp --dump none/hops
error: cannot write none/hops: No such file or directory
  help: make its folder first
[3]
$ mkdir -p hops/4-result.json; dtsim run gcp-data-parallel/scaling-ddp --dump hops
error: cannot write hops/4-result.json: Is a directory
  help: name a file in it
[3]
$ dtsim calibrate t.csv --fit stack.launch --profile none/mine.yaml
error: cannot write none/mine.yaml: No such file or directory
  help: make its folder first
[3]
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary training.micro_batch=1,2 --store none/s.db
error: cannot write none/s.db: No such file or directory
  help: make its folder first
[3]
$ dtsim explain gcp-data-parallel/scaling-ddp --output page --html page
error: --output and --html would both write page
  help: name two files
[2]
$ printf 'model: gpt2\n' > mine.yaml; dtsim run mine.yaml --trace ./mine.yaml; cat mine.yaml
error: --trace would write over ./mine.yaml, which the command line names as 'mine.yaml'
  help: name another file
model: gpt2
$ printf 'id\n' > mine.csv; dtsim run mine.csv#a -o mine.csv; cat mine.csv
error: --output would write over mine.csv, which the command line names as 'mine.csv#a'
  help: name another file
id
$ mkdir order.csv; dtsim schedule order.csv
error: cannot read 'order.csv': Is a directory
  help: name a file in it
[3]
$ printf 'name,measured.iteration_s\na,1\n' >noid.csv; dtsim validate noid.csv
noid.csv:1:1: error: no column 'id'
      1 | name,measured.iteration_s
        | ^
  help: add a column 'id' that names each row
[1]
% What was set is to blame, not what stood beside it in the file.
$ dtsim run gcp-data-parallel/scaling-ddp --set parallelism.tensor=3
--set: error: tensor 3 × pipeline 1 does not divide the 16 GPUs [parallelism]
  help: choose degrees whose product divides the GPU count
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set micro_batch=4
--set: error: unknown key 'micro_batch'
  help: did you mean 'training.micro_batch'?
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set bandwidth=4
--set: error: unknown key 'bandwidth'
  help: did you mean 'cluster.intra.bandwidth'?
[1]
$ (echo id; yes a,b | head -30) >uneven.csv; dtsim validate uneven.csv 2>&1 | grep -E 'cells' | tail -2
  help: put cells that hold a comma in quotes
uneven.csv: error: 20 more rows with another number of cells
$ dtsim run gcp-data-parallel/scaling-ddp --tokens 0
error: --tokens: must be above 0, got 0
  help: for instance --tokens 300B
[2]
$ dtsim run gcp-data-parallel/scaling-ddp --tokens -5
error: --tokens: must be above 0, got -5
  help: for instance --tokens 300B
[2]
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.gpu.clock=0
--set: error: must be between 1 Hz and 100 GHz, got 0 [cluster.gpu.clock]
  help: clock at which the peak rates hold; for the reader, nothing follows from it
[1]
$ dtsim run pipelines/interleaved-1f1b --set parallelism.flushes=8
--set: error: interleaved-1f1b: in each of 8 flushes: the number of microbatches (2) must be a multiple of the number of stages (4) [parallelism.flushes]
  help: use flushes: 4, or global_batch 64
[1]
$ dtsim run pipelines/own-order --set parallelism.flushes=2 2>&1 | sed 's|/.*/||'
--set: error: own-order.csv is an order for 16 microbatches, but each replica has 8 in each flush [parallelism.flushes]
  help: use flushes: 1, or global_batch 64
$ dtsim run pipelines/interleaved-1f1b --set parallelism.flushes=3
--set: error: each flush has as many microbatches, but 3 does not divide the 16 of a replica [parallelism.flushes]
  help: use flushes: 2
[1]
% Keys as other tools call them, wherever they are put.
$ for key in tp pp dp seq_len batch_size hidden_size num_gpus nodes dtype parallelism.tp parallelism.tensor_parallel model.hidden_size model.num_layers cluster.num_gpus training.seq_len training.mbs; do dtsim run scaling-ddp --set $key=2 2>&1 | tail -n 1; done
  help: it belongs to parallelism: write tensor
  help: it belongs to parallelism: write pipeline
  help: it belongs to parallelism: write data, the number of replicas; it may be left out, for it follows from the GPUs
  help: write training.sequence_length
  help: it belongs to training: write global_batch, the samples of a step, and micro_batch, those of one forward pass of a replica
  help: it belongs to model: write hidden
  help: it belongs to cluster: write nodes and gpus_per_node
  help: did you mean 'cluster.nodes'?
  help: write training.precision
  help: write tensor
  help: write tensor
  help: write hidden
  help: write layers
  help: write nodes and gpus_per_node
  help: write sequence_length
  help: write micro_batch
% What is taken for something else: a scenario for a table, a file that builds upon a scenario for another tool's.
$ dtsim calibrate job.yaml --fit stack.launch
error: 'job.yaml' is no table of measurements
  help: a table is a CSV file; `dtsim run` takes a scenario
[1]
$ printf 'extends: ./job.yaml\n' >more.yaml; dtsim import more.yaml
error: more.yaml is a scenario already
  help: `dtsim run` takes it as it is; `dtsim export` writes it for a launcher
[1]
% Keys that are written and do nothing in the plan at hand are told, with the reason and what would make them count; those of a profile are not.
$ dtsim run pipelines/1f1b --set stack.fp8.dispatch=true --set stack.fsdp.prefetch=3 --set stack.ddp.overlap_gather=true --set cluster.inter.nic_bandwidth='50 GB/s' | grep -A20 Warnings
Warnings
  ! cluster.inter.nic_bandwidth does nothing here: it only bounds what a node
    gets out of its adapters; set cluster.inter.node_goodput
  ! stack.ddp.overlap_gather does nothing here: only ZeRO-1 gathers what a step
    has updated; set parallelism.data_parallel=zero1
  ! stack.fsdp.prefetch does nothing here: no parameters are sharded; set
    parallelism.data_parallel=fsdp
  ! stack.fp8.dispatch does nothing here: training.precision has no products in
    8 or 4 bits; set training.precision=fp8

Simulated 26,988 tasks, 27,084 events; detail kernel, network flow, ranks
folded.
$ dtsim run optimizers/llama-3-8b-muon --width 120 --set training.optimizer=adamw --set parallelism.data_parallel=fsdp --set stack.optimizer.newton_schulz_steps=9 --set stack.ddp.bucket='500 MB' --set stack.fsdp.zero3_prefetch=5 | grep 'nothing here'
  ! stack.ddp.bucket does nothing here: shards of parameters have units, not buckets; set parallelism.data_parallel=ddp
  ! stack.fsdp.zero3_prefetch does nothing here: it is about ZeRO-3; set parallelism.data_parallel=zero3
  ! stack.optimizer.newton_schulz_steps does nothing here: training.optimizer is not muon; set training.optimizer=muon
$ dtsim run optimizers/llama-3-8b-muon --width 120 --set parallelism.data_parallel=ddp --set parallelism.gradient_sync=step --set stack.fsdp.called=zero3 --set stack.optimizer.newton_schulz_steps=9 | grep 'nothing here'
  ! parallelism.gradient_sync does nothing here: gradients are reduced at that moment anyway; leave it out
$ dtsim run optimizers/llama-3-8b-muon --width 120 --set parallelism.data_parallel=zero3 --set stack=deepspeed --set stack.fsdp.prefetch=5 | grep 'nothing here'
  ! stack.fsdp.prefetch does nothing here: ZeRO-3 has a number of its own; set stack.fsdp.zero3_prefetch
$ dtsim run pipelines/dualpipe --set stack=megatron-bridge --set stack.ddp.overlap_gather=true --set parallelism.data_parallel=zero1 --set cluster.nodes=2 --set training.global_batch=128 | grep -A3 overlap_gather
  ! stack.ddp.overlap_gather does nothing here: schedules in two directions have
    no first forward pass to gather beside; leave it out

Simulated 54,889 tasks, 55,580 events; detail kernel, network flow, ranks
$ dtsim run pipelines/1f1b --set stack.fp8.half_weights=true
--set: error: weights in bf16 alone (fp8.half_weights) contradict fp32 master copies (master_weights), which the stack has [stack.fp8.half_weights]
  help: set stack.master_weights=false, or leave fp8.half_weights out
[1]
$ dtsim run pipelines/1f1b --set stack.master_weights=false --set stack.fp32_gradients=false --set stack.fp8.half_weights=true
--set: error: weights in bf16 (fp8.half_weights) contradict weights in the narrow format only (fp8.primary_weights), which the stack has [stack.fp8.half_weights]
  help: set stack.fp8.primary_weights=false, or leave fp8.half_weights out
[1]
% Slips of a power of ten, and adapters that no GPU reaches.
$ dtsim run scaling-ddp --set cluster.gpu.peak.fp16=312e-9TFLOP/s
--set: error: fp16 of 312000 FLOP/s is less than a GPU's [cluster.gpu.peak]
  help: write it as in 989 TFLOP/s; 0, or none, says that the format cannot be computed
[1]
$ dtsim run scaling-ddp --set training.global_batch=67108864 --set training.micro_batch=1 --set cluster.nodes=1
--set: error: 8388608 microbatches a step, more than 1000000 [training.global_batch]
  help: use a larger micro_batch, or global_batch 8000000 at most
[1]
$ dtsim run planning/llama-3-8b --no-hints --set cluster.profile=dgx-h100 --set cluster.inter.nics_per_node=16 2>&1 >/dev/null
--set: warning: of 16 adapters the 8 GPUs of a node reach 8, 1 each: the others carry nothing, and each has its share of node_goodput [cluster.inter.nics_per_node]
  help: set cluster.inter.nics_per_gpu=2, too, if each GPU reaches as many, or nics_per_node=8
$ dtsim run planning/llama-3-8b --no-hints --set cluster.profile=dgx-h100 --set cluster.inter.nics_per_node=16 --set cluster.inter.nics_per_gpu=2 --set cluster.gpus_per_node=4 2>&1 >/dev/null
