% Scenarios side by side. The first column is what the others are compared with.
$ dtsim compare gcp-data-parallel/scaling-ddp gcp-data-parallel/scaling-pdp --width 120 | grep -vE '^  ' | sed 's/[0-9][0-9]* % of/# % of/'
A  gcp-data-parallel/scaling-ddp
B  gcp-data-parallel/scaling-pdp

B is the fastest; A has # % of B's tokens/s.

Speed

Where the time goes (differences in shares of the first iteration: they add up)

Memory of the fullest GPU

What differs in the inputs
$ dtsim compare gcp-data-parallel/scaling-ddp --with name=other --format json | tr -d '\t' | sed -nE '/^"(fastest|ties)"/p; /^"inputs"/,$p'
"fastest":"gcp-data-parallel/scaling-ddp",
"ties":["name=other"],
"inputs":[]
}
$ dtsim compare gcp-data-parallel/scaling-ddp --with name=other | grep '^A tie'
A tie: A and B differ by less than 3 % in tokens/s.
$ dtsim compare gcp-data-parallel/scaling-ddp --with "parallelism.tensor=2 training.micro_batch=16" | sed -n '/^What differs/,$p'
What differs in the inputs
  key                   A  B
  training.micro_batch  8  16
  parallelism.tensor    -  2
$ dtsim compare gcp-data-parallel/scaling-ddp gcp-data-parallel/scaling-ddp --html same.html | tail -n 2; grep -c '<p>Nothing: all scenarios are the same' same.html
What differs in the inputs
  Nothing: all scenarios are the same.
1
% The differences of the shares add up to that of the iteration.
$ dtsim compare gcp-data-parallel/scaling-ddp gcp-data-parallel/scaling-pdp --format json | tr -d '\t\n' | sed 's/}, {/}\n{/g' | sed -nE 's/.*"name":"(time_s[^"]*|iteration_time_s)".*"differences":\[0, ([-0-9.e]*)\].*/\1 \2/p' | awk '$1 == "iteration_time_s" { whole = $2; next } { sum += $2 } END { print (sum - whole < 1e-9 && whole - sum < 1e-9) ? "same" : sum " " whole }'
same
$ dtsim compare gcp-data-parallel/limit-ddp --set model=mingpt-6.7b --with training.micro_batch=1 | grep -c 'B does not fit'
0
[1]
% What does not fit is not the fastest, and what may run out of memory is not surely that.
$ dtsim compare gcp-data-parallel/scaling-ddp --with cluster.gpu.memory=4GB --width 200 | sed -n '4s/[0-9]* %/# %/p'
A is the fastest that fits in memory; B would have # % of A's tokens/s, but does not fit in memory.
$ dtsim compare gcp-data-parallel/scaling-ddp --set model=mingpt-34b --with training.micro_batch=2 | sed -n 4,5p
None of these plans fits in memory; their times are those of GPUs with more.
$ dtsim compare gcp-data-parallel/scaling-ddp --set model=mingpt-34b --with training.micro_batch=2 --format json | grep -A1 -E 'fastest'
	"fastest":	null,
	"ties":	[],
$ dtsim compare gcp-data-parallel/network-fsdp --set model=mingpt-16b --set training.global_batch=1024 --set training.micro_batch=128 --set training.recompute=full --with training.micro_batch=8 --with cluster.gpu.memory=8GB --width 300 | sed -n '5,6s/[0-9]* %/# %/gp'
A is the fastest that fits in memory; B has # % of A's tokens/s; C would have # % of A's tokens/s, but does not fit in memory; A may run out of memory (dtsim run says why); B is the fastest that surely fits.
% Six plans do not fit into one line: the table goes on below, with the names once more.
$ dtsim compare pipelines/1f1b pipelines/gpipe pipelines/zbv pipelines/chimera pipelines/naive pipelines/looped-bfs | sed -n '/^Speed/,/^Where/p' | sed 's/[0-9][0-9,.]*/#/g; s/#[a-z %GiB#+-]*$//'
Speed
                           A         B                 C
  GPUs                     
  iteration time    
  samples/s               
  tokens/s            
  tokens/s per GPU    
  MFU                 

                           D                E                   F
  GPUs                     
  iteration time    
  samples/s             
  tokens/s            
  tokens/s per GPU    
  MFU                 

Where the time goes (differences in shares of the first iteration: they add up)
$ dtsim compare pipelines/1f1b pipelines/gpipe pipelines/zbv pipelines/chimera pipelines/naive pipelines/looped-bfs --width 50 | awk 'length > 50'
% Wrong usage.
$ dtsim compare
error: nothing to compare
  help: name two scenarios, or one and --with KEY=VALUE
[2]
$ dtsim compare gcp-data-parallel/scaling-ddp
error: nothing to compare
  help: name two scenarios, or one and --with KEY=VALUE
[2]
$ dtsim compare a b c d e f g
error: more than 6 scenarios
  help: `dtsim sweep` takes any number
[2]
$ dtsim compare gcp-data-parallel/scaling-ddp --with training.micro_batch
error: --with: 'training.micro_batch' is not KEY=VALUE
  help: write a dotted key, = and a value: --with training.micro_batch=4
[2]
$ dtsim compare gcp-data-parallel/scaling-ddp gcp-data-parallel/scaling-dp
error: no file and no scenario 'gcp-data-parallel/scaling-dp'
  help: did you mean 'gcp-data-parallel/scaling-ddp'? `dtsim list scenarios` names those that come along
[3]
% The same as a web page.
$ dtsim compare gcp-data-parallel/scaling-ddp gcp-data-parallel/scaling-pdp --html page.html >/dev/null; grep -c '<h2>' page.html; grep -c 'display:flex;height' page.html; grep -cE 'https?:|<script' page.html
5
2
0
[1]
% A token of another model is other work: no plan is the fastest.
$ dtsim compare gcp-data-parallel/scaling-ddp --with model=mingpt-34b --width 200 | sed -n "4s/(.*)/(#)/p"
The models differ: their tokens/s do not compare, so none of these plans is the fastest; B does not fit in memory (#).
$ dtsim compare gcp-data-parallel/scaling-ddp --with model=mingpt-34b --format json | grep -A1 fastest
	"fastest":	null,
	"ties":	[],
% Waiting for the host has another shade than waiting for token counts.
$ dtsim compare experts/mixtral-2-dgx --with training.micro_batch=2 --html bars.html >bars.txt; for what in 'waiting for the host' 'token counts (host)'; do grep -o "var(--[a-z]*)\"></i>$what" bars.html | head -1; done
var(--host)"></i>waiting for the host
var(--counts)"></i>token counts (host)
% Nor is one of sequences of another length; iterations of other batches are compared by tokens/s.
$ dtsim compare pipelines/1f1b --with training.sequence_length=1024 --width 200 | sed -n 4,6p
The sequences differ in length, and a token of a longer one is more work: none of these plans is the fastest.

Speed
$ dtsim compare pipelines/1f1b --with training.sequence_length=1024 --format json | grep -A1 fastest
	"fastest":	null,
	"ties":	[],
$ dtsim compare pipelines/1f1b --with training.global_batch=64 --width 200 | sed -n 4,5p
B is the fastest; A has 93 % of B's tokens/s.
An iteration is 65,536 tokens in A, 131,072 in B: tokens/s compare, iteration times do not.
$ dtsim compare gcp-data-parallel/scaling-ddp --with cluster=dgx-a100-80gb --with cluster.gpu.memory=4GB | grep '^  USD' | sed 's/[0-9.]\{4,\}/#/g'
  USD/h                    #         -                #  +0.0 %
  USD / billion tokens      554         -                   -
% Of clusters with other numbers of GPUs, tokens/s say little; memory is held against what each GPU has.
$ dtsim compare lora-8b --with cluster=aws-p5-48xlarge --width 100 | grep -E '^Numbers|^  (GPUs|USD/h|what)'
Numbers of GPUs differ, 1 in A, 8 in B: one of each compares by tokens/s per GPU.
  GPUs                        1         8   +700.0 %
  USD/h                       -        55
  what the GPU has     79.35 GiB  79.65 GiB   +0.4 %
% A value may hold a blank, and a change begins where a KEY= follows one.
$ dtsim compare gcp-data-parallel/scaling-ddp --with 'cluster.intra.bandwidth=64 GB/s  training.micro_batch=4 ' | sed -n '2p; /^What differs/,$p'
B  cluster.intra.bandwidth=64 GB/s training.micro_batch=4
What differs in the inputs
  key                      A  B
  training.micro_batch     8  4
  cluster.intra.bandwidth  -  64 GB/s
$ dtsim compare gcp-data-parallel/scaling-ddp --with '64 GB/s'
error: --with: '64 GB/s' is not KEY=VALUE
  help: write a dotted key, = and a value: --with training.micro_batch=4
[2]
% Several simulations at a time print the same, errors in their order included.
$ dtsim compare pipelines/1f1b pipelines/gpipe pipelines/zbv --threads 3 --format json | cmp - <(dtsim compare pipelines/1f1b pipelines/gpipe pipelines/zbv --threads 1 --format json)
$ dtsim compare gcp-data-parallel/scaling-ddp --with training.micro_batch=3 --with stack=nope --threads 2
$DATA/scenarios/gcp-data-parallel/scaling-ddp.yaml:10:17: error: global_batch 128 is not a multiple of data 16 × micro_batch 3 [training.global_batch]
     10 |   global_batch: 128 # 8 per GPU
        |                 ^
  help: use global_batch 96 or 144
--with: error: no profile 'nope' in hardware/stacks/ [stack]
  help: `dtsim list` names all profiles; a path holds a '/' or ends in .yaml
[1]
% Also where tokens are different work, what cannot run is said.
$ dtsim compare gcp-data-parallel/scaling-ddp --with model=mingpt-34b --with cluster.gpu.memory=4GB --width 300 | sed -n '5s/([0-9.]* of [0-9.]* GiB)/(#)/gp'
The models differ: their tokens/s do not compare, so none of these plans is the fastest; B does not fit in memory (#); C does not fit in memory (#).
$ dtsim compare pipelines/1f1b --with training.sequence_length=1024 --with cluster.gpu.memory=4GB --width 300 | sed -n '5s/([0-9.]* of [0-9.]* GiB)/(#)/gp'
The sequences differ in length, and a token of a longer one is more work: none of these plans is the fastest; C does not fit in memory (#).
$ dtsim compare planning/llama-3-8b --with training.sequence_length=4096 --width 300 | sed -n "4s/(.*)/(#)/p"
The sequences differ in length, and a token of a longer one is more work: none of these plans is the fastest; A does not fit in memory (#).
% A whole run of a plan that does not fit, and of other tokens; unknown money has no difference.
$ dtsim compare gcp-data-parallel/scaling-ddp --with 'cluster.gpu.memory=4 GB' --tokens 300B | grep 'whole run' | sed -E 's/[0-9.]+ days/N days/g; s/ [0-9.,]+ / N /; s/[+-][0-9.]+ %/N %/'
  whole run             N days  N days, if it did fit  N %
  whole run, USD           N                          -
$ dtsim compare gcp-data-parallel/scaling-ddp --with 'cluster.gpu.memory=4 GB' --tokens 300B --format json | tr -d '\n\t' | grep -oE '"(usd_per_billion_tokens|whole_run_usd)"[^}]*' | sed -E 's/[0-9.]{3,}/N/g'
"usd_per_billion_tokens","values":[N, 0],"differences":[0, null]
"whole_run_usd","values":[N, 0],"differences":[0, null]
$ dtsim compare gcp-data-parallel/scaling-ddp --with training.tokens=1B --tokens 300B --width 150 | grep 'whole run is'
The whole run is 300,000,000,000 tokens in A, 1,000,000,000 in B: what whole runs take does not compare.
% A whole run, by the option of run.
$ dtsim compare gcp-data-parallel/scaling-ddp --with training.micro_batch=4 --tokens 300B | grep whole | sed -E 's/[0-9.,]+/N/g'; dtsim compare gcp-data-parallel/scaling-ddp --with training.micro_batch=4 --tokens 1e9 --format json | grep whole_run_; dtsim compare gcp-data-parallel/scaling-ddp --tokens 1g
  whole run             N days  N days  +N %
  whole runN USD           N     N  +N %
			"name":	"whole_run_s",
			"name":	"whole_run_usd",
error: nothing to compare
  help: name two scenarios, or one and --with KEY=VALUE
[2]
% The time is that of run, at the detail that it takes.
$ printf '%s\n' 'model: llama-3-70b' 'cluster: {profile: dgx-h100, nodes: 8}' 'stack: megatron-core' 'training: {global_batch: 512, micro_batch: 1, sequence_length: 8192, precision: bf16}' 'parallelism: {tensor: 8, pipeline: 2}' > large.yaml
$ dtsim run large.yaml --format json | grep -c '"detail":.*"block"'
1
$ for c in run 'compare --with training.optimizer=lion'; do dtsim $c large.yaml --format json | tr -d '\t' | grep -m1 '^"iteration_time_s"'; done | sort -u | wc -l
1
% What was set comes first, then the job and its sizes, then what profiles hold.
$ dtsim compare planning/llama-3-8b --with "cluster=dgx-b200 cluster.nodes=4" --rows 5 --width 120 2>/dev/null | sed -nE '/^What differs/,$s/^  ([a-z.]+) .*/\1/p'
key
cluster
cluster.nodes
cluster.gpu
cluster.price
cluster.name
and
$ dtsim compare planning/llama-3-8b gcp-data-parallel/scaling-ddp --rows 18 --width 120 2>/dev/null | sed -nE '/^What differs/,$s/^  ([a-z_.]+) .*/\1/p' | paste -sd ' '
key model model.layers model.hidden model.heads model.kv_heads model.ffn_hidden model.vocab model.expected_parameters cluster cluster.gpu cluster.price cluster.nodes stack training.global_batch training.micro_batch training.sequence_length training.precision training.optimizer and
