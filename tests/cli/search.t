% Searching layouts. Times are left out; tests/property and tests/validation watch those.
$ printf 'model: {profile: gpt, layers: 8, hidden: 1024, heads: 16, vocab: 32000}\ncluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 4}\nstack: megatron-lm\ntraining: {global_batch: 16, micro_batch: 1, sequence_length: 1024, precision: bf16}\n' >small.yaml
$ dtsim search small.yaml --simulate 0 --top 1 --width 200 | grep -E 'proven to be|rule|simulated$|ranked behind' | sed -E 's/^ +[0-9]+ .*GiB +/  /; s/^ +[0-9,]+  /  /; s/: tensor.*//'
  tensor 4 + sequence · ddp 1 · micro 16  (Megatron's rule)
  not proven, ranked behind the simulated ones by closed form
  simulated
Searched with exhaustive, and proven to be the best
$ dtsim search small.yaml --over offload=none --threads 1 --format json >one.json; dtsim search small.yaml --over offload=none --threads 3 --format json | cmp - one.json
$ dtsim search small.yaml --method mcmc --seed 5 --simulate 60 --format json >mcmc.json; dtsim search small.yaml --method mcmc --seed 5 --simulate 60 --format json | cmp - mcmc.json; grep seed mcmc.json
	"seed":	5,
$ dtsim search small.yaml --over offload=none --store s.db --format json | cmp - one.json; dtsim search small.yaml --over offload=none --store s.db | grep 'in the store' | sed -E 's/^ +[0-9]+//'
  of these found in the store
% The settings it prints give the same plan.
$ eval "$(dtsim search small.yaml --top 1 | sed -n '/^The first .*: dtsim/,/[^\\]$/p' | sed 's/^The first .*: dtsim/dtsim/')" --format csv | cut -d, -f1 | head -1
scenario
% What does not fit says what is missing and what lifts it.
$ dtsim search small.yaml --set model.hidden=12288 --set model.heads=96 --over parallelism.data_parallel=ddp --over offload=none --simulate 4 --width 200 | grep -E 'does not fit|What binds' | sed -E 's/[0-9.]+ (GiB|s)/N \1/g; s/fits: .*/fits/'
First what lacks least. ! does not fit the GPU; host! not the memory or drives of the nodes.
What binds: memory. The plan that comes nearest needs N GiB more on each GPU, and optimizer states take N GiB. Without --over a plan fits
DDP does not fit: it needs N GiB more, and optimizer states take N GiB. Changing up to 3 of its keys does not help.
Megatron's rule does not fit: it needs N GiB more, and optimizer states take N GiB. Changing up to 3 of its keys does not help.
$ dtsim search small.yaml --set model.hidden=4096 --set model.heads=32 --set model.layers=24 --over parallelism.data_parallel=ddp,zero1 --over offload=none --over training.recompute=none,full --over parallelism.tensor=1,2 --over parallelism.pipeline=1 --width 200 | sed -nE 's/[0-9.]+ (GiB|m?s)/N \1/g; /not fit/p'
DDP does not fit: it needs N GiB more, and optimizer states take N GiB. Two changes lift that: parallelism.tensor=2 parallelism.data_parallel=zero1 (N s, N GiB).
$ dtsim search small.yaml --set model.layers=96 --set model.hidden=12288 --set model.heads=96 --over offload=none --simulate 4 | head -3 | cut -c1-60
gpt on 4 × A100-SXM4-40GB, by time
Nothing fits in memory, which is proven for every layout tha
  rank  iteration  tokens/s     MFU        memory  USD/1e9 t
% Wrong usage.
$ dtsim search small.yaml --over parallelism.tensr=1
--over: error: unknown key 'tensr' [parallelism.tensr]
  help: did you mean 'tensor'?
[2]
$ dtsim search small.yaml --over parallelism.schedule=1f2b
error: --over: '1f2b' is no value of parallelism.schedule
  help: `dtsim list schedules` names all
[2]
$ dtsim search small.yaml --over parallelism.tensor=0
error: --over: '0' is no value of parallelism.tensor
  help: write whole numbers, such as 1,2,4 or 1..8*2
[2]
$ dtsim search small.yaml --method guess
error: --method: unknown value 'guess'
  help: there are exhaustive, dp, mcmc
[2]
$ dtsim search small.yaml --objective cost
error: the price of cluster DGX A100 40GB is unknown
  help: set cluster.price, the USD per hour of a node
[1]
$ dtsim list methods --format names; dtsim list spaces
exhaustive
dp
mcmc
name     what it is
layouts  degrees, schedule, microbatch, sharding, recomputation, offload,
         placement
soap     every operator cut by itself: by sample, attribute and parameter, and
         where its parts lie
rent     clusters and numbers of nodes, each with its best layout: time and
         money of a whole run
% What to rent.
$ dtsim search small.yaml --tokens 1e9 --clusters dgx-a100-40gb,gcp-a2-highgpu-8g,titan-rtx-nvlink-2 --nodes 1..2 --over offload=none --simulate 2 --width 200 | sed -E 's/[0-9.,]+ (h|min|days) .*//; s/ +$//'
1.00 billion tokens of gpt, by time
Rent 2 × dgx-a100-40gb (16 A100-SXM4-40GB): 17.1 min, the soonest of 4 offers that can do it.

  cluster            nodes  GPUs      time  goodput      USD  tokens/USD     MFU           memory  simulated  Pareto  plan
  dgx-a100-40gb          2    16
  dgx-a100-40gb          1     8
  gcp-a2-highgpu-8g      1     8
  gcp-a2-highgpu-8g      2    16

* no other is both sooner and cheaper. = a tie: within 3 % of the first.
An offer is the whole machine of its cluster profile: what the scenario says of cluster.gpus_per_node is left out (--set keeps it).
Failures and checkpoints are in it (goodput); storage, traffic and idle hours are not. Prices are those of the cluster profiles, with their source and date there (dtsim show CLUSTER).
Compared: 4 offers with a plan, of 6.
Not compared in money, as the price of a node is unknown: dgx-a100-40gb × 2, 1 (--price 'CLUSTER=30 USD/h').

Without a plan
titan-rtx-nvlink-2 × 1: no layout is legal: TITAN RTX has no bf16 arithmetic
titan-rtx-nvlink-2 × 2: several nodes without a network between them (say inter.transport: tcp or rdma, or nodes: 1)

The first again: dtsim run small.yaml \
    --set cluster=dgx-a100-40gb \
    --set cluster.nodes=2 \
    --set parallelism.data=16 \
    --set parallelism.tensor=1 \
    --set parallelism.pipeline=1 \
    --set parallelism.context=1 \
    --set parallelism.expert=1 \
    --set training.micro_batch=1 \
    --set parallelism.sequence=false \
    --set parallelism.order=tensor-data-pipeline \
    --set parallelism.virtual_stages=1 \
    --set parallelism.partition=auto \
    --set parallelism.schedule=1f1b \
    --set parallelism.data_parallel=zero1 \
    --set training.recompute=none
$ dtsim search small.yaml --tokens 1e9 --clusters gcp_a2_highgpu_8g --nodes 1,2 --over offload=none --simulate 2 --deadline "20 min" --width 200 | sed -nE 's/[0-9.,]+ (h|min|days|USD|times)/N \1/g; 2,3p; s/.*(too late).*/\1/p'
No offer can do it within N min.
The deadline binds: the soonest, 1 × gcp-a2-highgpu-8g, takes N min, N USD; N times the speed would keep the deadline.
too late
too late
% An offer is the whole machine of its profile, whatever GPU the scenario has put into its own; the command repeats that.
$ sed 's/gpus_per_node: 4/gpus_per_node: 1, gpu: h100-80gb-pcie/' small.yaml >own.yaml; dtsim search own.yaml --tokens 1e9 --clusters gcp-a2-highgpu-8g --set cluster.profile=dgx-h100 --set training.global_batch=32 --over offload=none --simulate 2 --width 200 >own.txt; sed -nE 's/^(Rent [^:]*).*/\1/p; /whole machine/p' own.txt; sed -n '/^The first again: /,/[^\\]$/p' own.txt | sed -n 2,4p
Rent 1 × gcp-a2-highgpu-8g (8 A100-SXM4-40GB)
An offer is the whole machine of its cluster profile: what the scenario says of cluster.gpus_per_node, cluster.gpu is left out (--set keeps it).
    --set cluster=gcp-a2-highgpu-8g \
    --set training.global_batch=32 \
    --set cluster.nodes=1 \
$ dtsim search own.yaml --tokens 1e9 --clusters gcp-a2-highgpu-8g --over offload=none --simulate 2 --format json | grep '"tokens_per_s"' | head -1 | tr -dc '0-9.\n' >offer.txt; eval "$(dtsim search own.yaml --tokens 1e9 --clusters gcp-a2-highgpu-8g --over offload=none --simulate 2 | sed -n '/^The first .*: dtsim/,/[^\\]$/p' | sed 's/^The first .*: dtsim/dtsim/') --format json" 2>messages | grep '"tokens_per_s"' | head -1 | tr -dc '0-9.\n' | cmp - offer.txt; cat messages
--set: warning: cluster=gcp-a2-highgpu-8g replaces the scenario's gpus_per_node, gpu
  help: cluster.profile=gcp-a2-highgpu-8g keeps them
$ dtsim search small.yaml --nodes 1..4
error: time and money of a training run need --tokens
  help: for instance --tokens 300B, or training.tokens in the scenario
[2]
$ dtsim search small.yaml --tokens 1e9 --deadline soon 2>&1 | head -1
error: --deadline: expected a time, got 'soon'
% Epochs, samples and tokens of each are as good as their product; other tools' options for the length of a run are told so.
$ dtsim run small.yaml --tokens 2x500x1M | grep 'Whole run'
Whole run: 1.00 billion tokens in 54.8 min
$ dtsim run small.yaml --tokens 1e9 | grep 'Whole run'
Whole run: 1.00 billion tokens in 54.8 min
$ dtsim run small.yaml --tokens 2x500x 2>&1 | head -1
--tokens: error: unknown unit 'x500x' in '2x500x' [training.tokens]
$ dtsim run small.yaml --tokens 2xmany 2>&1 | head -1
--tokens: error: unknown unit 'xmany' in '2xmany' [training.tokens]
$ dtsim run small.yaml --epochs=3
error: unknown option '--epochs'
  help: write --tokens 3x50000x1200: epochs, samples, tokens of each
[2]
% A budget beside the deadline, what can be rented, and a page.
$ dtsim search small.yaml --space rent --tokens 1e9 --over offload=none --simulate 2 --nodes 1,2 --objective cost --deadline "12 h" --budget "10 kUSD" --html rent.html --width 200 | sed -nE '1p; s/[0-9.,]+ (h|min|days|USD)/N \1/g; /^Rent/p'
1.00 billion tokens of gpt within 12.0 h for at most 10,000 USD, by cost
Rent 1 × aws-g6e-xlarge (1 L40S-48GB): N h, N USD, the cheapest of 33 offers that can do it within N h for at most N USD.
$ grep -c '</title></g>' rent.html; grep -cE 'https?:|<script|<link' rent.html
33
0
[1]
% How much of each GPU the plan takes, and for a gain of more than a factor the factor.
$ dtsim search small.yaml --space rent --tokens 1e8 --over offload=none --simulate 2 --nodes 1 --objective cost --clusters 'aws-g6-xlarge,aws-p6-b200-48xlarge' | grep -oE '1/[0-9]+ of the time|[0-9.]+ of (22.5|179.1) GiB' | sed -E 's,^(1/)?[0-9.]+,\1N,'
1/N of the time
N of 22.5 GiB
N of 179.1 GiB
% What cannot be launched is marked, with what stands in the way.
$ dtsim search small.yaml --tokens 1e9 --over parallelism.data_parallel=fsdp --over offload=none --simulate 2 --width 300 | grep -oE 'fsdp 4 · micro 4.*|^† .*'
fsdp 4 · micro 4 †
† megatron-lm cannot express parallelism.data_parallel fsdp: --use-torch-fsdp2 takes no tied embeddings: set parallelism.data_parallel=zero1, or zero3. Nothing that was simulated there and fits can be launched.
$ dtsim search small.yaml --tokens 1e9 --over parallelism.data_parallel=fsdp --over offload=none --simulate 2 --format json | grep -oE '"(launchable|obstacle)":.*(false|cannot)'
"launchable":	false
"obstacle":	"megatron-lm cannot
% Of an offer it is the best plan that can be.
$ dtsim search small.yaml --tokens 1e9 --over parallelism.data_parallel=fsdp,zero1 --over offload=none --simulate 2 --width 300 | grep -oE '(fsdp|zero1) 4 · .*|^†.*'
zero1 4 · micro 4
% Times of minutes stand in minutes below the picture.
$ dtsim search small.yaml --space rent --tokens 1e8 --over offload=none --simulate 2 --nodes 1,2 --objective cost --clusters 'gcp-a2-highgpu-8g,aws-p4d-24xlarge' --html soon.html >/dev/null; grep -oE 'class="tick"[^>]*>[0-9.]+ (min|h|d)<' soon.html | grep -oE '>.*'
>3 min<
>4 min<
$ dtsim search small.yaml --tokens 1e9 --clusters gcp-a2-highgpu-8g --nodes 1,2 --over offload=none --simulate 2 --budget "1 USD" --width 200 | sed -nE 's/[0-9.,]+ (h|min|days|USD)/N \1/g; 2,3p'
No offer can do it for at most N USD.
The cheapest, 1 × gcp-a2-highgpu-8g, takes N min, N USD: N USD over the budget.
$ dtsim search small.yaml --tokens 1e9 --clusters gcp-a2-highgpu-8g --nodes 1,2 --over offload=none --simulate 2 --budget "1 USD" --format json >rent.json
[4]
$ grep -E 'within_limits|in_budget' rent.json | sort | uniq -c | sed -E 's/^ +//'
2 			"in_budget":	false,
1 	"within_limits":	0,
$ grep -oE '"(peak_device|capacity|unserved)_gib":' rent.json | sort | uniq -c | sed -E 's/^ +//'
2 "capacity_gib":
2 "peak_device_gib":
2 "unserved_gib":
$ grep left_out rent.json
	"left_out":	["cluster.gpus_per_node"],
$ dtsim search small.yaml --tokens 1e9 --deadline "1 s" --width 200
1.00 billion tokens of gpt within 1.0 s, by time
No offer can do it within 1.0 s.
The deadline binds: no offer was searched that could keep it; more nodes or faster GPUs may.

Without a plan
the scenario's cluster × its nodes: 722 times the deadline even at the peak rate of its GPUs: not searched
[4]
$ dtsim search small.yaml --tokens 1e9 --clusters dgx-a100-40gb --over offload=none --simulate 2 --budget "1 kUSD" --width 200 | sed -n 2,3p
None of the offers that fit has a price to hold against the budget.
$ dtsim search small.yaml --tokens 1e9 --clusters dgx-a100-40g --nodes 1
error: no profile 'dgx-a100-40g' in hardware/clusters/
  help: did you mean 'dgx-a100-40gb'?
[1]
$ dtsim search small.yaml --tokens 1e9 --nodes 1,0
error: --nodes: 0 is out of bounds
  help: from 1 to 1000000
[2]
$ dtsim search small.yaml --tokens 1e9 --nodes two
error: --nodes: 'two' is not a whole number
[2]
$ dtsim search small.yaml --tokens 1e9 --budget 5000
error: --budget: '5000' has no unit
  help: write 5000$ or, in single quotes for the shell, '$5000'
[2]
$ dtsim search small.yaml --tokens 1e9 --budget $3M
error: --budget: expected an amount of money, got 'M'
  help: write 3M$ or, in single quotes for the shell, '$3M'
[2]
$ dtsim search small.yaml --tokens 1e9 --budget 3M
error: --budget: unknown unit 'M' in '3M'
  help: write 3M$ or, in single quotes for the shell, '$3M'
[2]
$ dtsim search small.yaml --tokens 1e9 --deadline "3 weeks" --budget '$1.5M' --over offload=none --simulate 2 | head -1
1.00 billion tokens of gpt within 21.0 days for at most 1,500,000 USD, by time
$ dtsim search small.yaml --tokens 1e9 --deadline "2 months" --budget 20k$ --over offload=none --simulate 2 | head -1
1.00 billion tokens of gpt within 60.8 days for at most 20,000 USD, by time
$ dtsim run small.yaml --set 'cluster.price=$30/h' | grep '^  Price' | sed 's/h .*/h/'
  Price                 30.00 USD/h
$ dtsim search small.yaml --tokens 300b
error: --tokens: unknown unit 'b' in '300b'
  help: did you mean 300B?
[2]
$ for t in "3 hrs" "1d12h" 2026-12-24; do dtsim search small.yaml --tokens 1e9 --deadline "$t"; done; dtsim search small.yaml --tokens 1e9 --budget 3B; dtsim search small.yaml --tokens 1e9 --budget '€3M'
error: --deadline: unknown unit 'hrs' in '3 hrs'
  help: write 3 h
error: --deadline: unknown unit 'd12h' in '1d12h'
  help: write 36 h
error: --deadline: unknown unit '-12-24' in '2026-12-24'
  help: write how long it may take from now on, such as 30 days
error: --budget: expected an amount of money, got a size: '3B'
  help: write 3B$ or, in single quotes for the shell, '$3B'
error: --budget: expected an amount of money, got '€3M'
  help: prices are in US dollars: write what it is in those, such as 150k$
[2]
$ dtsim search small.yaml --tokens 1e9 --deadline 10
error: --deadline: '10' has no unit
  help: write a time such as "36 h", "10 d" or "3 weeks"
[2]
% Few of many offers; by name or GPU; with prices of one's own; a part of a node.
$ dtsim search small.yaml --tokens 1B --clusters '*A100*' --nodes 1,2 --price 'dgx-a100-40gb=20 USD/h' --top 1 --over offload=none --simulate 2 --objective cost --width 200 >some.txt; sed -nE 's/[0-9.,]+ (h|min|days|USD)/N \1/g; 2p; /^Compared|with --top/p; s/(profiles have no price: [^,]*),.*[(]/\1, … (/p' some.txt
Rent 1 × dgx-a100-40gb (8 A100-SXM4-40GB): N min, N USD, the cheapest of 10 offers that can do it.
  the first 1 and all with *; 7 more with --top 10
Compared: 10 offers with a plan, of 10.
$ grep -o "cluster.price=.*" some.txt
cluster.price=20 USD/h' \
$ dtsim search small.yaml --tokens 1B --clusters dgx-a100-40gb,gcp-a2-highgpu-8g --over offload=none --simulate 2 --objective cost --width 200 | sed -nE '/cheapest|only offer/s/.*, the/the/p; /^Compared/p; /^Not/p'
the only offer with a price that can do it.
Compared: 2 offers with a plan, of 2.
Not compared in money, as the price of a node is unknown: dgx-a100-40gb × 1 (--price 'CLUSTER=30 USD/h').
$ dtsim search small.yaml --tokens 1B --clusters '*z80*'
error: --clusters: no cluster or GPU is named like '*z80*'
  help: `dtsim list clusters` names all
[2]
$ dtsim search small.yaml --tokens 1B --clusters 'dgx-a100-40g,*a2-high*'
error: no profile 'dgx-a100-40g' in hardware/clusters/
  help: did you mean 'dgx-a100-40gb'?
[1]
$ dtsim search small.yaml --tokens 1B --clusters 'gcp-a2-highgpu-8g,*z80*'
error: --clusters: no cluster or GPU is named like '*z80*'
  help: `dtsim list clusters` names all
[2]
$ dtsim search small.yaml --tokens 1B --clusters 'dgx-a100-40gb,gcp-a2-high[gm]*-8g' --over offload=none --simulate 2 --width 200 | sed -nE '/^Compared|^Not/p'
Compared: 2 offers with a plan, of 2.
Not compared in money, as the price of a node is unknown: dgx-a100-40gb × 1 (--price 'CLUSTER=30 USD/h').
$ dtsim search small.yaml --tokens 1B --clusters 'dgx_a100 40*,*A2_HighGPU-8*' --price 'dgx-a100-40gb=30$/h' --over offload=none --simulate 2 --format json | grep -A1 -E '"(unpriced|cluster)"|idle_gpus' | grep -E 'unpriced|"cluster"|idle'
	"unpriced":	[],
			"cluster":	"dgx-a100-40gb",
			"idle_gpus":	0,
			"cluster":	"gcp-a2-highgpu-8g",
			"idle_gpus":	0,
			"cluster":	"gcp-a2-highgpu-8g-fastsocket",
			"idle_gpus":	0,
$ dtsim search small.yaml --tokens 1B --clusters '*titan*'
error: --clusters: none of those has a price: a100-80gb-torchtitan, titan-rtx-nvlink-2, titan-rtx-pcie-2
  help: --price 'CLUSTER=30 USD/h' gives one a price
[2]
$ dtsim search small.yaml --tokens 1B --clusters dgx-2 --price 'dgx-1=3 USD/h'
error: --price: dgx-1 is none of the clusters that are offered
  help: `dtsim list clusters` names all profiles
[2]
$ dtsim search small.yaml --tokens 1B --price 'dgx-a100-40gb=30 USD/h' --over offload=none --simulate 2 --width 200 | grep -oE '[0-9]+ USD|goodput[)].*|cluster.price=.*'
1 USD
goodput); storage, traffic and idle hours are not. Prices were given for the scenario's cluster.
cluster.price=30 USD/h' \
$ dtsim search small.yaml --tokens 1B --clusters dgx-a100-40gb,gcp-a2-highgpu-8g --price 'dgx-a100-40gb=30 USD/h' --over offload=none --simulate 2 --width 200 | tr '\n' ' ' | grep -oE 'Prices are[^:]*: *[a-z0-9-]*'
Prices are those of the cluster profiles, with their source and date there (dtsim show CLUSTER), but for those   given: dgx-a100-40gb
$ dtsim search small.yaml --tokens 1B --clusters gcp-a2-highgpu-8g --set cluster.price_gpus=1 --over offload=none --simulate 2 --width 200 2>&1 | grep -E '^Not|price_gpus'
Not compared in money, as the price of a node is unknown: gcp-a2-highgpu-8g × 1 (--price 'CLUSTER=30 USD/h').
    --set cluster.price_gpus=1 \
--set: warning: the price of the profile is not one of this many GPUs: it is taken as unknown [cluster.price_gpus]
$ dtsim run small.yaml --set cluster.profile=gcp-a2-highgpu-8g --set cluster.price_gpus=1 2>&1 | grep -E 'price|Price'
--set: warning: the price of the profile is not one of this many GPUs: it is taken as unknown [cluster.price_gpus]
  help: give cluster.price, too: what those GPUs cost
$ dtsim run small.yaml --set cluster.price_gpus=1 2>&1 | grep -E 'price|Price'
--set: warning: price_gpus without a price does nothing [cluster.price_gpus]
  help: give cluster.price, too: what those GPUs cost
$ dtsim search small.yaml --tokens 1B --set cluster.price_gpus=1 --over offload=none --simulate 2 2>&1 | grep -A1 price_gpus
    --set cluster.price_gpus=1 \
    --set parallelism.data=4 \
--
--set: warning: price_gpus without a price does nothing [cluster.price_gpus]
  help: give cluster.price, too: what those GPUs cost
$ dtsim search small.yaml --tokens 1B --set cluster.price_gpus=3 --set "cluster.price={value: 5 USD/h, source: 'Ann''s offer'}" --over offload=none --simulate 2 | grep -o 'cluster.price=.*'
cluster.price={value: 5 USD/h, source: '\''Ann'\'''\''s offer'\''}' \
$ dtsim search small.yaml --tokens 1B --set cluster.price_gpus=3 --set 'cluster.price=5 USD/h' --over offload=none --simulate 2 --format json | grep idle_gpus
			"idle_gpus":	2,
$ dtsim search small.yaml --tokens 1B --clusters '*a100*' --nodes 1 --over offload=none --simulate 1 --format json | grep -oE '"unpriced":.."[^,]*,'
"unpriced":	["a100-40gb-roce-1600",
$ dtsim search small.yaml --tokens 1.5t
error: --tokens: unknown unit 't' in '1.5t'
  help: did you mean 1.5T?
[2]
$ dtsim search small.yaml --tokens 1B --price dgx-1
error: --price: 'dgx-1' names no cluster and its price
  help: write for instance --price 'dgx-h100=30 USD/h'
[2]
$ dtsim search small.yaml --tokens 1B --price dgx-1=3
error: --price: '3' has no unit
  help: write for instance --price 'dgx-h100=30 USD/h'
[2]
$ dtsim search small.yaml --tokens 1B --clusters gcp-a2-highgpu-8g,aws-p4d-24xlarge --set cluster.gpus_per_node=1 --over offload=none --simulate 2 --width 200 | grep idle
Failures and checkpoints are in it (goodput); storage, traffic and idle hours are not. Prices are those of the cluster profiles, with their source and date there (dtsim show CLUSTER).
Of each node 7 GPUs are paid for and idle (cluster.gpus_per_node).
$ echo '{extends: dgx-a100-40gb, name: four, gpus_per_node: 4}' >four.yaml; dtsim search small.yaml --tokens 1B --clusters 'gcp-a2-high*-8g,./four.yaml' --set cluster.gpus_per_node=1 --over offload=none --simulate 2 --width 200 | grep '^Of each'
Of each node 3 to 7 GPUs are paid for and idle (cluster.gpus_per_node).
% A reason that many have is told once.
$ dtsim search small.yaml --tokens 1B --clusters aws-p4d-24xlarge,aws-p5-48xlarge,aws-p3-16xlarge --nodes 1,2 --over parallelism.tensor=3 --width 200 | sed -n '/^Without/,$p'
Without a plan
aws-p4d-24xlarge × 1, 2; aws-p5-48xlarge × 1, 2; aws-p3-16xlarge × 1, 2: no layout is legal: with the values that are searched, no degrees divide its GPUs and the global batch
% The microbatch is searched and need not be given; what is wrong with the scenario is no offer's fault.
$ sed 's/micro_batch: 1, //' small.yaml >less.yaml; dtsim search less.yaml --over offload=none --simulate 4 --format json >less.json; dtsim search small.yaml --over offload=none --simulate 4 --format json | cmp - less.json
$ dtsim search less.yaml --tokens 1e9 --over offload=none --simulate 2 --width 200 | grep -oE '^Rent .*GB[)]'
Rent 1 × DGX A100 40GB (4 A100-SXM4-40GB)
$ dtsim search less.yaml --set training.precision=foo --space rent --tokens 1e9 --budget "1 USD" 2>&1 | head -1
--set: error: unknown value 'foo' [training.precision]
% One cluster is searched as it is without --tokens; of several those that the answer is made from.
$ dtsim search small.yaml --over offload=none --over parallelism.data_parallel=zero1,zero3 --top 1 --format json | grep iteration_time_s | head -1 >plain.txt; dtsim search small.yaml --over offload=none --over parallelism.data_parallel=zero1,zero3 --tokens 1e9 --format json | grep iteration_time_s | cmp - plain.txt
$ dtsim search small.yaml --over offload=none --over parallelism.data_parallel=zero1,zero3 --set cluster.nodes=2 --top 1 --format json | grep iteration_time_s | head -1 >plain.txt; dtsim search small.yaml --over offload=none --over parallelism.data_parallel=zero1,zero3 --nodes 1,2 --tokens 1e9 --format json | grep iteration_time_s | head -1 | cmp - plain.txt
$ dtsim search gcp-data-parallel/scaling-ddp --format json | tr -d '[:space:]' | grep -oE '"simulated":[0-9]+'
"simulated":29
$ dtsim search small.yaml --tokens 1e9 --objective memory
error: --objective memory is not for what to rent
  help: there are time, cost and throughput-per-dollar
[2]
$ dtsim search planning/llama-3-8b --space rent --tokens 300e9 --objective cost --clusters aws-g6e-48xlarge --nodes 32 --width 200 2>/dev/null | grep -cE 'aws-g6e.* 32 .*fsdp 256 · micro 2 · recompute full · offload'
1
$ dtsim search small.yaml --space rent
error: time and money of a training run need --tokens
  help: for instance --tokens 300B, or training.tokens in the scenario
[2]
$ dtsim search small.yaml --set training.tokens=1B --space rent --over offload=none --simulate 2 --nodes 1 --clusters gcp-a2-highgpu-8g | head -1
1.00 billion tokens of gpt, by time
% A launcher gets the best plan that it can express; better ones are told with the reason.
$ dtsim search small.yaml --over offload=none --export deepspeed 2>&1 >ds.json | grep -A1 -E 'passed over|exported' | sed -E 's/rank [0-9]+/rank N/; s/, .* more:/, P:/; s/\([0-9.]+ m?s\)/(T)/; s/[0-9.]+ %/N %/'; grep stage ds.json
warning: passed over rank N, fsdp 4 · micro 4 (T): deepspeed cannot express parallelism.data_parallel = fsdp
  help: ZeRO-3 is nearest: the same shards, gathered by DeepSpeed's prefetcher
warning: exported is rank N, zero1 4 · micro 4 (T): N % behind the best in time
  help: `dtsim search` without --export shows the table
		"stage":	1
$ dtsim search small.yaml --export megatron-lm 2>messages | grep -c size; sed -E 's/rank [0-9]+/rank N/; s/[(][0-9.]+ m?s[)]/(T)/; s/[0-9.]+ %/N %/' messages
9
warning: passed over rank N, fsdp 4 · micro 4 (T): megatron-lm cannot express parallelism.data_parallel fsdp
  help: --use-torch-fsdp2 takes no tied embeddings: set parallelism.data_parallel=zero1, or zero3
warning: exported is rank N, zero1 4 · micro 4 (T): N % behind the best in time
  help: `dtsim search` without --export shows the table
warning: a scenario does not say, and megatron-lm takes defaults for: --norm-epsilon
  help: the file says what each is by default, and where the model's own stands
$ dtsim search small.yaml --over parallelism.pipeline=4 --over parallelism.data_parallel=zero2 --over offload=none --over parallelism.schedule=1f1b --export deepspeed 2>&1 | sed -E 's/rank [0-9]+, .* more:/rank N, P:/'
warning: passed over rank N, P: deepspeed cannot express parallelism.data_parallel zero2
  help: DeepSpeed's pipelines take ZeRO stages 0 and 1 only: set parallelism.data_parallel=zero1
error: none of the plans that fit can be expressed by deepspeed
  help: narrow the search with --over, or raise --simulate
% What a launcher cannot express uses up no simulations of what it can: the export is that of a search narrowed by hand.
$ plan='--set stack=pytorch-2 --over training.micro_batch=4 --over parallelism.tensor=1,2 --over training.recompute=none --over offload=none --simulate 4 --export megatron-lm'; dtsim search gcp-data-parallel/scaling-ddp $plan >all.sh 2>/dev/null; dtsim search gcp-data-parallel/scaling-ddp $plan --over parallelism.schedule=1f1b 2>/dev/null | cmp - all.sh && head -1 all.sh
#!/bin/bash
$ dtsim search small.yaml --tokens 1e9 --export deepspeed
error: --export is not for what to rent
  help: choose an offer first, then search --export on its cluster and nodes
[2]
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --export deepspeed
error: --export is not for --space soap
  help: leave it out, or use --space layouts
[2]
% Adapters are searched like whole weights.
$ dtsim search small.yaml --set 'training.adapters={lora: {rank: 16, base: nf4}}' --simulate 16 --format json >lora.json; grep -cE '"fits":.true' lora.json | sed 's/[1-9][0-9]*/some/'
some
% The answer as a web page: a dot for every simulated plan, the table, and nothing from elsewhere.
$ dtsim search small.yaml --html page.html --top 2 >/dev/null; grep -c '<circle' page.html | sed 's/[1-9][0-9]*/some/'; grep -c '<h2>' page.html; grep -cE 'https?:|<script|<link' page.html
some
4
0
[1]
$ dtsim search small.yaml --html page.html --export megatron-lm
error: --html is for the table, --export for a plan
  help: search once with each
[2]
$ dtsim search small.yaml --set model.layers=400 --set model.hidden=12288 --set model.heads=96 --over offload=none --over training.micro_batch=1 --over parallelism.schedule=1f1b --over training.recompute=full --simulate 4 --html page.html >/dev/null
[4]
$ grep -cE 'What binds|Nothing fits in memory, which is proven' page.html
2
% What host memory has no room for goes to drives, and the scenario's own plan stands in the table. Without drives nothing fits.
$ dtsim search offload/zero-infinity-dgx-2 --over parallelism.tensor=1 --over parallelism.pipeline=1 --over parallelism.context=1 --over training.micro_batch=8 --over training.recompute=full --simulate 4 --top 1 --width 200 | grep -oE 'offload optimizer.*'
offload optimizer, gradients, parameters (NVMe)
offload optimizer (NVMe), gradients, parameters (NVMe), activations  (the scenario's own)
$ dtsim search offload/zero-infinity-dgx-2 --over parallelism.tensor=1 --over parallelism.pipeline=1 --over parallelism.context=1 --over training.micro_batch=8 --over training.recompute=full --simulate 4 --top 1 --width 200 --over offload=none,cpu >off.txt; grep -oE 'Nothing fits.*|Without --over a plan fits' off.txt
Nothing fits in memory, which is proven for every layout that was searched.
Without --over a plan fits
$ dtsim search offload/zero-infinity-dgx-2 --over parallelism.tensor=1 --over parallelism.pipeline=1 --over parallelism.context=1 --over training.micro_batch=8 --over training.recompute=full --simulate 4 --top 1 --over offload=nvme --format json | grep -cE '"own":.true|"offload.parameters":."nvme"'
3
$ dtsim search small.yaml --over offload=disk
error: --over: 'disk' is no value of offload
  help: write none, cpu or nvme (every level of it), or of optimizer, gradients, parameters and activations some with + between, :nvme behind those on drives
[2]
$ dtsim search small.yaml --over parallelism.data_parallel=zero9
error: --over: 'zero9' is no value of parallelism.data_parallel
  help: write dp, ddp, zero1, zero2, zero3 or fsdp
[2]
$ dtsim search small.yaml --over parallelism.tensor=two
error: --over: 'two' is no value of parallelism.tensor
  help: write whole numbers, such as 1,2,4 or 1..8*2
[2]
% Where the GPU's memory would do and that of the nodes does not.
$ dtsim search small.yaml --set model=gpt3-175b --set cluster.profile=dgx-a100-80gb --set cluster.gpus_per_node=8 --over offload=none,optimizer+gradients+parameters --over training.recompute=full --simulate 2 --top 1 --width 200 | grep -E 'host!|of all these' | sed -E 's/[0-9.,]+ (GiB|s|%)/N \1/g; s/ +[0-9,]+ / N /'
--set: warning: model=gpt3-175b replaces the scenario's layers, hidden, heads, vocab
  help: model.profile=gpt3-175b keeps them
 N †     N s       406  N %  N GiB host!                  fsdp 8 · micro 1 · recompute full · offload optimizer, gradients, parameters
First what lacks least. ! does not fit the GPU; host! not the memory or drives of the nodes.
 N  of all these simulated, to see what is lacking
$ dtsim search small.yaml --set model.layers=400 --set model.hidden=12288 --set model.heads=96 --set cluster.inter.transport=none --set cluster.host.memory=10GB --simulate 2 --top 20 --width 200 | grep -oE '(GiB ! host!|More nodes .*)' | sort -u
GiB ! host!
More nodes were not tried: cluster DGX A100 40GB has no network between nodes
% Stages of pipelines are cut anew, alike on any number of threads.
$ dtsim search small.yaml --method dp --over parallelism.pipeline=4 --over parallelism.schedule=1f1b --simulate 10 --threads 1 --format json >dp.json; dtsim search small.yaml --method dp --over parallelism.pipeline=4 --over parallelism.schedule=1f1b --simulate 10 --threads 3 --format json | cmp - dp.json; grep -o 'layers \[[0-9, ]*\]' dp.json | head -1
layers [1, 3, 3, 1]
% What is not there says why.
$ dtsim search small.yaml --over parallelism.tensor=3 | sed -n 2,3p
No layout is legal: with the values that are searched, no degrees divide the 4 GPUs and the global batch of 16.
  parallelism.tensor: no value of --over divides the GPUs.
$ dtsim search small.yaml --set cluster.gpus_per_node=3 --simulate 2 --width 200 | grep -E '^(DDP|FSDP):'
DDP: no such plan is legal here: 3 replicas do not share a global batch of 16 evenly; training.global_batch=15 or 18 would do.
FSDP: no such plan is legal here: 3 replicas do not share a global batch of 16 evenly; training.global_batch=15 or 18 would do.
$ dtsim search small.yaml --set cluster.gpus_per_node=1 --simulate 2 --width 200 | grep -E '^(DDP|FSDP):'
FSDP: one GPU has nobody to share parameters with; it is DDP.
$ dtsim search small.yaml --over offload=optimizer --simulate 2 --width 200 | grep -E '^(DDP|FSDP):'
DDP: no such plan is legal here, with the values of --over.
FSDP: no such plan is legal here, with the values of --over.
% What could not be simulated is counted as that, not as too large.
$ dtsim search small.yaml --set fidelity.detail=kernel --set fidelity.microbatches=all --set training.global_batch=65536 --over training.micro_batch=1 --over parallelism.tensor=1 --over parallelism.pipeline=4 --over parallelism.schedule=1f1b --over offload=none --width 200 | grep -E '^Nothing|legal|could not' | sed -E 's/ +[0-9]+ +/ N /'
Nothing could be simulated.
DDP: no such plan is legal here, with the values of --over.
FSDP: no such plan is legal here, with the values of --over.
Megatron's rule: no such plan is legal here, with the values of --over.
4 legal layouts could not be simulated, the first: pipeline N (1f1b) · ddp 1 · micro 1: one iteration has about 25.1 million kernels, more than the 15 million that are simulated.
 N legal layouts looked at
 N could not be simulated
% Lists of modules to recompute.
$ dtsim search small.yaml --over 'training.recompute={modules: [core_attn, layernorm]}' --over offload=none --simulate 2 --top 1 --width 200 | grep -oE 'recompute [{].*[}]|recompute=.*[}]' | sort -u
recompute {modules: [core_attn, layernorm]}
recompute={modules: [core_attn, layernorm]}
$ dtsim search small.yaml --over 'training.recompute={modules: [attention]}'
error: --over: '{modules: [attention]}' is no value of training.recompute
  help: write none, selective, full, except-last, sqrt, '{every: 2}', '{first: 3}', modules or '{modules: [core_attn, mlp]}'
[2]
$ dtsim search small.yaml --over 'training.recompute={modules: [mlp, moe]}'
error: module moe needs experts (model.experts) [training.recompute]
  help: leave it out
[1]
$ dtsim search small.yaml --set 'training.recompute={modules: [mla_up_proj]}'
error: module mla_up_proj needs latent attention (model.kv_lora_rank) [training.recompute]
  help: leave it out
[1]
$ dtsim search small.yaml --over "training.recompute=$(seq -s, -f '{every: %g}' 1 254),modules"
error: --over: more than 256 values of training.recompute
  help: search a part of them at a time
[2]
% Round ticks on the axes of the page; what is said of baselines stands below the table that has them.
$ dtsim search gcp-data-parallel/scaling-ddp --over parallelism.schedule=1f1b --simulate 4 --html page.html >/dev/null; grep -o 'class="tick"[^<]*<' page.html | sed 's/.*>//; s/<//' | tr '\n' '|'; echo
800 ms|1 s|1.5 s|2 s|0|10|20|30|40|iteration time, to the left is faster|GiB|what a GPU has, 39.6 GiB|
% Where money is asked for and no price is known, the answer says so.
$ dtsim search small.yaml --over offload=none --simulate 2 --tokens 1e9 --objective cost | sed -n '2,/^$/p' | grep -A1 'Money was'
Money was asked for, but none of the offers that can do it has a price: they
  are ranked by time.
% Money has few digits beside its axis; one offer alone makes no picture.
$ dtsim search gcp-data-parallel/scaling-ddp --over offload=none --nodes 1,2 --simulate 2 --tokens 1e13 --html money.html >/dev/null; grep -o 'class="tick"[^<]*<' money.html | sed 's/.*>//; s/<//' | tail -1; dtsim search gcp-data-parallel/scaling-ddp --over offload=none --simulate 2 --tokens 1e13 --html money.html >/dev/null; grep -c '<svg' money.html
million USD
0
[1]
% The first plan has a name of its own in the picture, where neither a dot nor another name is.
$ dtsim search gcp-data-parallel/scaling-ddp --simulate 4 --html first.html >first.txt; grep -c '>the first[^<]*</text>' first.html
1
$ dtsim search gcp-data-parallel/scaling-ddp --html crowded.html >/dev/null; awk -F'"' '/r="7"/ { y = $4 } />the first[^<]*<.text/ { print (/middle/ || ($4 - y - 4) ^ 2 < 2 ? "at its dot" : "beside another") }' crowded.html
at its dot
% Where the first may run out of memory, the command is that of the first that surely fits; what is said to help can be done.
$ printf 'model: llama-3-8b\ncluster: {profile: rtx-4090-pcie-8, nodes: 1, gpu: h100-80gb-pcie}\nstack: pytorch-2\ntraining: {global_batch: 64, micro_batch: 1, sequence_length: 4096, precision: bf16}\n' >outputs.yaml
$ dtsim search outputs.yaml --over parallelism.tensor=1 --over parallelism.pipeline=2,4 --over parallelism.schedule=zb-h1 --over parallelism.data_parallel=zero1 --over parallelism.context=1 --over training.micro_batch=1 --over training.recompute=none --over offload=none --width 200 | grep -E '^The first|pipeline=|leaves room' | sed -E 's/.*(More recomp)/\1/'
More recomputation, a smaller micro-batch where it is above 1, or, for a pipeline's outputs, stack.pipeline.keeps_outputs=none leaves room; expandable segments
The first that surely fits again (rank 3, not a plan with ?): dtsim run outputs.yaml \
    --set parallelism.pipeline=2 \
$ dtsim run outputs.yaml --set parallelism.data=2 --set parallelism.pipeline=4 --set parallelism.schedule=zb-h1 --set parallelism.data_parallel=zero1 --width 500 | grep -oE 'That is .* leaves room'
That is the outputs of all microbatches, joined as the step ends: stack.pipeline.keeps_outputs=none (return_outputs=False of PyTorch's schedules) or a smaller training.global_batch leaves room
% Plans that nobody makes half are marked.
$ printf 'model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 8192}\ncluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 2}\nstack: torchtitan\ntraining: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: amp-bf16}\n' >wide.yaml
$ dtsim search wide.yaml --over parallelism.data_parallel=ddp,fsdp --over parallelism.tensor=1 --over parallelism.pipeline=1 --over parallelism.context=1 --over training.micro_batch=1 --over training.recompute=none --over offload=none --simulate 4 --html wide.html --width 200 | grep -E '‡|fsdp 2' | sed -E 's/ +[0-9.]+ ms .*//'
  1
  2 ‡
‡ in fp32, all or a part of it, though half precision was asked for, and MFU counts from the peak of what it runs in: `dtsim run` says why and what helps.
$ grep -c '<p class="faint">‡' wide.html
1
$ dtsim search wide.yaml --over parallelism.data_parallel=ddp,fsdp --over parallelism.tensor=1 --over parallelism.pipeline=1 --over parallelism.context=1 --over training.micro_batch=1 --over training.recompute=none --over offload=none --simulate 4 --format json | grep '"wide"' | sort | uniq -c | sed -E 's/^ +//'
1 			"wide":	false,
1 			"wide":	true,
% Plans that the stack's launcher lacks are marked, and not what the answer writes out.
$ printf 'model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 8192}\ncluster: {profile: dgx-a100-40gb, nodes: 2, gpus_per_node: 2}\nstack: megatron-core\ntraining: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: bf16}\n' >bubbles.yaml
$ dtsim search bubbles.yaml --over parallelism.pipeline=2,4 --over offload=none --simulate 24 --top 2 --html bubbles.html --width 200 >bubbles.txt; sed -nE '3,5s/^( +[0-9]+ [=†]*).*[(]([a-z0-9-]+)[)].*/\1 \2/p; /^†/s/rank.*/rank N/p; s/[(]rank [0-9]+/(rank N/; /^The first/p; /schedule=/p' bubbles.txt; grep -c '<p class="faint">†' bubbles.html
  1 † zbv
  2 = zbv
  5  interleaved-1f1b
† Megatron-Core 2024 has no launcher flag for the schedule; it has 1f1b, interleaved-1f1b and interleaved-1f1b-moe-overlap. The best that it can launch is rank N
The first that can be launched again (rank N, not a plan with †): dtsim run bubbles.yaml \
    --set parallelism.schedule=interleaved-1f1b \
1
$ grep -c '>the answer</text>' bubbles.html; grep -oE 'r="7" stroke="currentColor"' bubbles.html | wc -l
1
1
$ dtsim search bubbles.yaml --over parallelism.pipeline=2,4 --over offload=none --simulate 24 --top 2 --format json | grep launchable | sort | uniq -c | sed -E 's/^ +//'
2 			"launchable":	false,
2 			"launchable":	true,
$ dtsim search bubbles.yaml --over parallelism.pipeline=2,4 --over offload=none --over parallelism.schedule=zbv --simulate 8 --top 1 --width 200 | grep -E '^†|^The first'
† Megatron-Core 2024 has no launcher flag for the schedule; it has 1f1b, interleaved-1f1b and interleaved-1f1b-moe-overlap. Nothing that was simulated and fits can be launched with it.
The first again: dtsim run bubbles.yaml \
$ dtsim search bubbles.yaml --over parallelism.pipeline=2,4 --over offload=none --simulate 24 --export megatron-lm 2>messages | grep -cE 'pipeline-model-parallel-size'; sed -E 's/rank [0-9]+/rank N/; s/, (.*) and [0-9]+ more:/, P:/; s/[(][0-9.]+ m?s[)]/(T)/; s/[0-9.]+ %/N %/' messages | grep -A1 zbv | head -2
1
warning: passed over rank N, P: megatron-lm cannot express parallelism.schedule = zbv
  help: Megatron-LM has 1F1B and its interleaved form: interleaved-1f1b is nearest
$ dtsim search bubbles.yaml --over parallelism.pipeline=2,4 --over offload=none --over parallelism.schedule=zbv --simulate 8 --export megatron-lm 2>&1 >plan.sh | tail -4 | head -2; grep -c zbv plan.sh
warning: megatron-lm cannot express parallelism.schedule = zbv
  help: Megatron-LM has 1F1B and its interleaved form: interleaved-1f1b is nearest
1
$ dtsim search bubbles.yaml --tokens 1B --nodes 2 --clusters dgx-a100-40gb --over parallelism.pipeline=4 --over offload=none --simulate 24 --format json | grep '"plan"' | grep -cE '1f1b|1F1B'
1
% One that can be launched, but may not fit, stands before the best that surely fits.
$ printf 'model: llama-3-8b\ncluster: dgx-h100\nstack: torchtitan-2025\ntraining: {global_batch: 64, sequence_length: 8192, precision: bf16, micro_batch: 1}\nparallelism: {data_parallel: fsdp}\n' >tight.yaml; dtsim search tight.yaml --set stack=deepspeed --over parallelism.pipeline=1,4 --over parallelism.tensor=1 --over parallelism.context=1 --over training.micro_batch=1 --over training.recompute=none --over parallelism.data_parallel=zero1,zero3 --over offload=none --top 6 --width 500 | sed -nE 's/^†.*[.] (The best .*) is rank.*/\1/p'
The best that surely fits and that it can launch
% What else the stack's launcher has no word for is marked, with what export says of it, and no answer either.
$ for stack in torchtitan-2025 deepspeed; do echo $stack; dtsim search tight.yaml --set stack=$stack --set model.layers=16 --over parallelism.pipeline=1 --over parallelism.tensor=1 --over parallelism.context=1 --over training.micro_batch=1 --over parallelism.shard_group=0 --over offload=none --over training.recompute=none --over parallelism.data_parallel=zero1,zero2,fsdp --top 4 --width 500 | tee out.txt | sed -nE 's/^ +[0-9]+ ([=†? ]*) .*(zero[123]|fsdp) 8.*/  \2 \1/p' | tr -d '=' | sort -u; tr '\n' ' ' <out.txt | sed 's/  */ /g' | grep -oE '[a-z-]+ cannot express [^:]*: [a-zA-Z0-9-]+'; done
torchtitan-2025
  fsdp       
  zero1 †     
  zero2  †   
torchtitan-toml cannot express parallelism.data_parallel = zero1: FSDP
torchtitan-toml cannot express parallelism.data_parallel = zero2: FSDP
deepspeed
  fsdp †    
  zero1     
  zero2      
deepspeed cannot express parallelism.data_parallel = fsdp: ZeRO-3
% Software that has stages of ZeRO and no FSDP is asked for its own.
$ dtsim search small.yaml --set stack=deepspeed --simulate 4 --width 200 | grep -oE '(zero3|fsdp) [0-9]+' | sort -u; dtsim search small.yaml --set stack=deepspeed --set parallelism.data_parallel=fsdp --simulate 4 --width 200 | grep -oE '(zero3|fsdp) [0-9]+' | sort -u
zero3 4
fsdp 4
% How sure it is that the answer fits, and what leaves more; who says how much memory there is needs no advice.
$ dtsim search planning/llama-3-8b --set cluster.profile=dgx-h100 --set cluster.nodes=1 --set stack=megatron-core --set training.global_batch=64 --set training.precision=bf16 --over parallelism.pipeline=1 --over training.recompute=none --over offload=none --simulate 8 --width 400 >sure.txt; grep '^Tensors' sure.txt; dtsim search planning/llama-3-8b --set cluster.profile=dgx-h100 --set cluster.nodes=1 --set stack=megatron-core --set training.global_batch=64 --set training.precision=bf16 --over parallelism.pipeline=1 --over training.recompute=none --over offload=none --simulate 8 --width 400 --set cluster.gpu.memory=75GiB | grep -c '^Tensors'
Tensors of rank 1 leave 1.4 GiB; in 6 of 10 published runs predictions were no more too low. Rank 4 leaves 20.7 (tensor 2 + sequence · fsdp 4 · micro 2; 1.9 % behind in time). --set cluster.gpu.memory=74GiB searches among plans that leave enough in 9 of 10.
0
[1]
% What comes through a pipe can be read once, and a search reads its scenario several times. Commands to copy name what was given.
$ dtsim search small.yaml --simulate 4 | grep -v small.yaml >file.txt; cat small.yaml | dtsim search /dev/stdin --simulate 4 | grep -v /dev/stdin | cmp - file.txt; dtsim search <(cat small.yaml) --simulate 4 | grep -v /dev/fd | cmp - file.txt; wc -l <file.txt
56
