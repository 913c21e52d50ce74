% What there is, and what is in it.
$ dtsim list
name           what it is
models         model profiles
architectures  model profiles that take their dimensions from the scenario
graphs         models as graphs of operators
gpus           GPU profiles
clusters       cluster profiles: nodes, GPUs and networks
stacks         software profiles: framework, fusions, allocator
scenarios      jobs to run
schedules      pipeline schedules
collectives    collective operations
optimizers     training.optimizer
precisions     training.precision
data-parallel  parallelism.data_parallel
methods        how `dtsim search` searches
spaces         what `dtsim search` searches
$ dtsim list gpus --format names | grep a100
a100-40gb
a100-40gb-pcie
a100-80gb
a100-80gb-pcie
$ dtsim list optimizers
name                what it is
sgd                 plain gradient descent: no states
sgd-momentum        one state per parameter
adam                two states per parameter
adamw               two states per parameter, decoupled weight decay
adafactor           factored second moment: rows and columns instead of a full
                    state
adamw-8bit          two states per parameter of one byte each
lamb                two states per parameter, layer-wise trust ratio
lion                one state per parameter
adafactor-momentum  the same with a first moment
none                forward and backward only: no states, no step, no clipping
muon                one state per parameter, matrices of the layers
                    orthogonalised; else adamw
$ dtsim list data-parallel
name   what it is
dp     one process feeds all GPUs (torch.nn.DataParallel)
ddp    a full replica per GPU, gradients averaged in buckets
zero1  optimizer states sharded
zero2  optimizer states and gradients sharded
zero3  optimizer states, gradients and parameters sharded
fsdp   parameters, gradients and states sharded by unit (PyTorch FSDP)
$ dtsim list collectives --width 60
name               what it is
all-reduce         every rank gets the sum: gradients of
                   DDP, tensor-parallel activations
all-gather         every rank gets all shards: parameters of
                   FSDP
reduce-scatter     every rank gets its shard of the sum:
                   gradients of FSDP
broadcast          one rank's tensor to all
reduce             the sum to one rank
all-to-all         every rank sends a part to every other:
                   experts
broadcast in turn  each rank's tensors to all: ZeRO-1 by
                   whole tensors
$ dtsim list models | head -3
name                   what it is
bert                   generic BERT encoder with masked-language-model and
                       next-sentence heads; all dimensions by override
$ dtsim list precisions --format json | head -5
{
	"precisions":	[{
			"name":	"fp32",
			"summary":	"single precision throughout"
		}, {
$ dtsim list scenarios --format names | grep scaling
gcp-data-parallel/scaling-ddp
gcp-data-parallel/scaling-fsdp
gcp-data-parallel/scaling-pdp
$ DTSIM_DATA=/nowhere dtsim list stacks --format names | grep 1.11
pytorch-1.11
$ dtsim show gcp-data-parallel/scaling-ddp | head -4
name: scaling-ddp
description: "DDP on 2 nodes of 8 A100-40GB over 100 Gbit/s Ethernet, 8 samples per GPU (figures 3 to 7 of the study). Vary cluster.nodes and training.global_batch together."
expect: "The study saw a dip from 8 to 16 GPUs: gradients leave NVLink for Ethernet, and most of the iteration is exposed all-reduce. On one node DDP is the fastest of the three; on several, PDP is."
model:
$ dtsim show gcp-data-parallel/scaling-ddp --effective --set training.micro_batch=4 --width 130 | grep -E '^(key|training.micro_batch|training.sequence|cluster.nodes|cluster.gpu.multi|fidelity.detail)'
key                                          value                         source  from
cluster.gpu.multiprocessors                  108                           [4]     hardware/gpus/a100-40gb.yaml:7
cluster.nodes                                2                                     scenarios/gcp-data-parallel/scaling-ddp.yaml:7
training.micro_batch                         4                                     --set
training.sequence_length                     256                                   scenarios/gcp-data-parallel/scaling-ddp.yaml:12
fidelity.detail                              auto                                  default
$ dtsim show gcp-data-parallel/scaling-ddp >a.yaml; dtsim show a.yaml | diff a.yaml - && echo the same again
the same again
$ dtsim run a.yaml | tail -1 | cut -c1-15
Simulated 6,752
$ dtsim show gcp-data-parallel/scaling-ddp --effective >e.yaml; dtsim run e.yaml
e.yaml:1:1: error: a table of values for reading, as `dtsim show --effective` prints it
      1 | key                                          value                        source
        | ^
  help: `dtsim show NAME`, without --effective, prints a file that can be used
[1]
$ dtsim show a100-40gb --effective >gpu.yaml; dtsim show gpu.yaml 2>&1 | grep -v '|'
gpu.yaml:1:1: error: a table of values for reading, as `dtsim show --effective` prints it
  help: `dtsim show NAME`, without --effective, prints a file that can be used
$ dtsim show a100-40gb | head -3
name: A100-SXM4-40GB
vendor: nvidia
architecture: ampere
$ dtsim show gpus/h100 | head -2
name: H100-SXM5-80GB
vendor: nvidia
$ dtsim show gpus/h1000 2>&1 | cut -c1-28
error: no profile 'h1000' in
  help: did you mean 'h100'?
$ dtsim show a100-40gb --set memory=1
error: --set changes scenarios, not profiles
  help: override it where a scenario uses it
[2]
$ dtsim show --json-schema | head -4
{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "scenario",
  "description": "one training job on one cluster",
$ dtsim show --json-schema cluster | sed -nE '/"price"/,/pattern/s/.*"pattern": "(.*)",/\1/p' | head -n 1 | sed 's/\\\\/\\/g' >price; for p in '$30/h' '$30 / h' '30 USD / hour' '30 USD/h' '30 / h' '30 USD /'; do echo "$p" | grep -cEf price; done | tr -d '\n'; echo
111100
$ dtsim show --json-schema gpu | head -4
{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "gpu",
  "description": "one accelerator; hardware/gpus/NAME.yaml",
$ dtsim show --reference cluster | head -3
## cluster

nodes, GPUs and what connects them; hardware/clusters/NAME.yaml
$ dtsim show | head -1
## scenario
% Folders of one's own come first.
$ mkdir -p data/models data/scenarios/mine && printf 'extends: mingpt-large\nname: my model\nlayers: 3\n' >data/models/mine.yaml && sed 's/mingpt-large/mine/; s/^name:.*/name: my job/' $DATA/scenarios/gcp-data-parallel/scaling-ddp.yaml >data/scenarios/mine/job.yaml
$ DTSIM_DATA=nowhere:data dtsim list models --format names | grep mine
mine
$ DTSIM_DATA=$PWD/data dtsim run mine/job | head -2
my job
  Model                 my model, 239 million parameters
$ dtsim run data/scenarios/mine/job.yaml 2>&1 | head -1 | sed 's/.*error/error/'
error: no profile 'mine' in models/ [model]
% what takes its dimensions from the scenario can be listed and shown as it is
$ dtsim list architectures --format names
bert
gpt
gpt-moe
llama
llama-moe
mingpt
$ dtsim show llama-moe | tail -5
# generic: a scenario that uses it has to
#   add 'layers': transformer layers
#   add 'hidden': width of the residual stream
#   add 'heads': attention heads of the queries
#   add 'vocab': rows of the token embedding, padding included
$ dtsim list graphs --format names
alexnet
googlenet
% Tables of measurements, their rows, and config files of Hugging Face
$ printf 'id,source,model,cluster,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.precision,training.optimizer,measured.iteration_s,measured.peak_device_gib\na,"a paper, page 3",mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,fp16,sgd,0.4,\nb,a blog,mingpt-large,gcp-a2-highgpu-8g,2,pytorch-1.11,128,8,256,fp16,sgd,0.9,31\n' >g.csv; dtsim show g.csv
g.csv: 2 runs

column                    rows  values
source                       2  a paper, page 3, a blog
model                        2  mingpt-large
cluster                      2  gcp-a2-highgpu-8g
cluster.nodes                2  1, 2
stack                        2  pytorch-1.11
training.global_batch        2  64, 128
training.micro_batch         2  8
training.sequence_length     2  256
training.precision           2  fp16
training.optimizer           2  sgd
measured.iteration_s         2  0.4, 0.9
measured.peak_device_gib     1  31

id  iteration_s  peak_device_gib
a           0.4                -
b           0.9               31

The scenario of a row:  dtsim show g.csv#a
All against dtsim:      dtsim validate g.csv
$ dtsim show g.csv#b --set training.micro_batch=4 | grep -E '^#|^name|micro_batch|nodes'
# source: a blog
# measured.iteration_s: 0.9
# measured.peak_device_gib: 31
name: b
  nodes: 2
  micro_batch: 4
$ dtsim show g.csv#b --effective | grep -E '^(key|cluster.nodes|training.precision)'
key                                          value                        source
cluster.nodes                                2
training.precision                           fp16
$ mkdir old.csv.d; cp g.csv old.csv.d/g.csv; dtsim show old.csv.d/g.csv#b | grep '^name'
name: b
$ dtsim show g.csv#c
error: no row 'c' in g.csv
  help: did you mean 'a'?
[1]
$ dtsim show g.csv --set training.micro_batch=4
error: --set changes scenarios, not tables
  help: name a row: TABLE.csv#ID
[2]
$ mkdir m; cp $DATA/tests/golden/interop/mistral-7b.json m/config.json; dtsim show m | grep -E '^(name|description|layers|attention_window|#)'; dtsim show m/config.json --effective | grep -E '^(hidden|causal)'
name: m
description: config.json of type mistral
layers: 32
attention_window: 4096
# 7.24 billion parameters: 32 layers of 4096, 32 heads
causal               true                         [1]     models/llama.yaml:14
hidden               4096                                 m/config.json:1
% A node on PCIe exchanges at the rate of its GPUs' slots, 0.8 of 24 and of 55 GB/s.
$ printf 'extends: h100-pcie-8\nname: mine\ngpu: a100-80gb-pcie\n' >mine.yaml; for cluster in ./mine.yaml h100-pcie-8; do dtsim run gcp-data-parallel/scaling-ddp --set cluster.profile=$cluster --set cluster.nodes=1 --set parallelism.data=8 --width 120 | grep '^  all-reduce' | awk '{print $(NF-1), $NF}'; done
10.5 GB/s
23.0 GB/s
