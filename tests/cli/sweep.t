% Sweeps: every combination, in the order of the command line. Numbers are left out; tests/property watches those.
$ printf 'model: mingpt-small\ncluster: gcp-a2-highgpu-8g\nstack: pytorch-1.11\ntraining: {global_batch: 32, micro_batch: 4, sequence_length: 64}\n' >small.yaml
$ dtsim sweep small.yaml --vary training.micro_batch=1..4*2,3 --vary parallelism.data_parallel=ddp,fsdp --width 120 | sed -E 's/[0-9.]+ (ms|s) .*//; s/iteration .*//; s/ +$//'
  micro_batch  data_parallel  GPUs
  1            ddp               8
  1            fsdp              8
  2            ddp               8
  2            fsdp              8
  4            ddp               8
  4            fsdp              8

Illegal combinations
  training.micro_batch=3 parallelism.data_parallel=ddp
  training.micro_batch=3 parallelism.data_parallel=fsdp
    global_batch 32 is not a multiple of data 8 × micro_batch 3 (use global_batch 24 or 48)

8 combinations: 6 simulated, 2 illegal.
Fastest that fits: training.micro_batch=4 parallelism.data_parallel=ddp (ddp 8).
* nothing else that fits is better in throughput, memory and price of a token at once.
% The store: the second time nothing is simulated, and a changed scenario is noticed.
$ dtsim sweep small.yaml --vary training.micro_batch=1,2 --store s.db --format csv >first.csv; dtsim sweep small.yaml --vary training.micro_batch=1,2 --store s.db --format csv | cmp - first.csv
$ dtsim sweep small.yaml --vary training.micro_batch=1,2 --store s.db | grep store
2 combinations: 2 simulated, 0 illegal; 2 of them were in the store.
$ sed -i s/64}/32}/ small.yaml; dtsim sweep small.yaml --vary training.micro_batch=1,2 --store s.db --format csv 2>messages | cmp -s - first.csv || cat messages
warning: the scenario or a profile has changed since results were stored in s.db: 'sequence_length: 64' is now 'sequence_length: 32'
  help: what is shown was simulated with the new one
$ ls s.db*
s.db
$ dtsim sweep small.yaml --vary training.micro_batch=1,2 --format json | grep -c '"iteration_time_s"'
2
% A full disk (here a limit on the size of files) ends nothing: the table is whole, and the end says what is not kept.
$ dtsim sweep small.yaml --vary training.micro_batch=1,2,4 --format csv >whole.csv; (ulimit -f 40; dtsim sweep small.yaml --vary training.micro_batch=1,2,4 --format csv --store full.db 2>messages >full.csv; echo $?); cmp full.csv whole.csv; sed -E 's/[0-9] of 3/N of 3/; s/results: .*/results: …/' messages
3
error: full.db lacks N of 3 results: …
  help: make room on its disk, or name a file on another one; the same command goes on from what is kept
$ dtsim sweep small.yaml --vary training.micro_batch=1,2,4 --format csv --store full.db | cmp - whole.csv
% Wrong usage.
$ dtsim sweep small.yaml
error: nothing to vary
  help: for instance --vary training.micro_batch=1,2,4; or use `dtsim run`
[2]
$ dtsim sweep small.yaml --vary training.micro_batch=8..1
error: --vary: the range '8..1' is empty or never ends
  help: write 1..8, 0..96+8 or 1..64*2
[2]
$ dtsim sweep small.yaml --vary training.micro_batch=1 --vary training.micro_batch=2
error: --vary: 'training.micro_batch' stands there twice
  help: give all its values at once, with commas
[2]
$ dtsim sweep small.yaml --vary training.global_batch=1..1000 --vary training.micro_batch=1..1000 --vary training.sequence_length=1..1000
error: more than 1000000 combinations
  help: vary fewer values, or use `dtsim search`
[2]
$ dtsim sweep small.yaml --vary training.micro_batch=1 --store small.yaml
error: --store would write over small.yaml, which the command line names as 'small.yaml'
  help: name another file
[2]
$ dtsim sweep small.yaml --vary training.micro_bacth=1,2 --format csv
--vary: error: unknown key 'micro_bacth' [training.micro_bacth]
  help: did you mean 'micro_batch'?
[2]
% a window of 80 columns: spare columns go, nothing wraps; the same mistake is said once
$ dtsim sweep small.yaml --vary training.micro_batch=1,2 --width 80 | grep -E '^  micro_batch|narrow'
  micro_batch  GPUs  iteration  tokens/s    MFU   memory  USD/1e9 tokens  Pareto
$ dtsim sweep small.yaml --vary training.micro_batch=1,2 --width 64 | grep -E '^  micro_batch|narrow'
  micro_batch  iteration  tokens/s   memory      USD/1e9  Pareto
  the window is too narrow to show GPUs, MFU
$ dtsim sweep small.yaml --vary training.micro_batch=1 --vary parallelism.pipeline=3 --vary parallelism.tensor=5,7 --width 80
Illegal combinations
  training.micro_batch=1 parallelism.pipeline=3 parallelism.tensor=5
    tensor 5 × pipeline 3 needs more than the 8 GPUs of the cluster (lower the
    degrees or add nodes)
  training.micro_batch=1 parallelism.pipeline=3 parallelism.tensor=7
    tensor 7 × pipeline 3 needs more than the 8 GPUs of the cluster (lower the
    degrees or add nodes)

2 combinations: 0 simulated, 2 illegal.
[1]
% a mistake of the scenario is told with its place
$ sed 's/^training:/trainin:/' small.yaml >typo.yaml; dtsim sweep typo.yaml --vary cluster.nodes=1,2 2>&1 | head -2 | cut -c1-60
typo.yaml:4:1: error: unknown key 'trainin'
      4 | trainin: {global_batch: 32, micro_batch: 4, sequen
$ mkdir folder.yaml; dtsim sweep folder.yaml --vary cluster.nodes=1,2
error: cannot read 'folder.yaml': it is a directory
  help: name a file in it
[3]
% Long names of keys are wrapped, nothing is cut and no line is wider than the window.
$ dtsim sweep small.yaml --vary training.micro_batch/training.global_batch/training.sequence_length=1/8/64,2/8/64 --vary cluster.nodes/parallelism.data_parallel=1/ddp --width 80 | sed -n '/^  /p' | head -12
  training.       cluster.nodes/  iteration  tokens/s   memory   USD/1e9  Pareto
    micro_batch/  parallelism.                                    tokens
    training.     data_parallel
    global_
    batch/
    training.
    sequence_
    length
  1/8/64          1/ddp            139.7 ms     3,666  5.4 GiB     2,227       *
  the window is too narrow to show GPUs, MFU
  training.micro_batch/training.global_batch/training.sequence_length=2/8/64
    cluster.nodes/parallelism.data_parallel=1/ddp
$ for width in 64 80; do dtsim sweep small.yaml --vary training.micro_batch=1,2 --vary parallelism.tensor=1,2 --vary training.recompute=none,full --vary parallelism.data_parallel=ddp,fsdp --width $width | awk -v w=$width 'length > w'; done
% What may run out of memory is not called the fastest without saying so.
$ dtsim sweep gcp-data-parallel/network-fsdp --set model=mingpt-16b --set training.global_batch=1024 --set training.recompute=full --vary training.micro_batch=8,128 | sed -n '/^Fastest/,/^[*?]/p'
Fastest that fits: training.micro_batch=128 (fsdp 8), which may run out of
memory (?); fastest that surely fits: training.micro_batch=8 (fsdp 8).
? may run out of memory: live tensors fit, but what the caching allocator has
% The picture: a line for each value of a key, over the numbers of the other; what does not fit is hollow, what is illegal leaves a gap.
$ printf 'model: mingpt-small\ncluster: gcp-a2-highgpu-8g\nstack: pytorch-1.11\ntraining: {global_batch: 32, micro_batch: 4, sequence_length: 64}\n' >small.yaml
$ dtsim sweep small.yaml --vary training.micro_batch=1,2,3,4 --vary parallelism.data_parallel=ddp,fsdp --format svg >s.svg; grep -oE '>(Throughput|tokens/s|GiB|samples|parallelism|training|gap|does not)[^<]*' s.svg | grep -v ' tokens/s, '; grep -oE '>training.micro_batch=4.*' s.svg | sed 's/[0-9,.]* tokens/# tokens/; s/[0-9.]* GiB/# GiB/' | sort | uniq -c
>Throughput and memory by training.micro_batch
>tokens/s, all GPUs together
>GiB, peak of the fullest GPU
>training.micro_batch
>samples per forward pass of one replica
>parallelism.data_parallel = ddp
>parallelism.data_parallel = fsdp
>gap: illegal
      2 >training.micro_batch=4 parallelism.data_parallel=ddp: # tokens/s, # GiB</title>
      2 >training.micro_batch=4 parallelism.data_parallel=fsdp: # tokens/s, # GiB</title>
$ dtsim sweep gcp-data-parallel/limit-ddp --vary model=mingpt-large,mingpt-13b --html page.html >/dev/null; grep -oE 'does not fit in memory|fill="#FFFFFF" class="paper" stroke="#0072B2"|GiB, does not fit|<h1>[^<]*' page.html | sort | uniq -c
      1 <h1>Combinations
      4 GiB, does not fit
      3 does not fit in memory
      4 fill="#FFFFFF" class="paper" stroke="#0072B2"
$ dtsim sweep gcp-data-parallel/network-fsdp --vary training.global_batch/training.micro_batch=64/8,1024/128 --set model=mingpt-16b --set training.recompute=full --format svg | grep -oE '>(\?|may run out of memory)<'
>?<
>?<
>?<
>may run out of memory<
% The highest tick is above the highest point, which lies below the upper edge.
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary training.micro_batch=1,2,4,8 --vary cluster.nodes=1,2,4 --set training.global_batch=512 --format svg >high.svg; grep -oE '>[0-9,]+<' high.svg | tr -d '<>' | tr '\n' ' '; grep -oE 'cy="[0-9.]+' high.svg | tr -d 'cy="' | sort -n | awk 'NR == 1 { print ($1 > 100 ? "inside" : "outside") }'
0 50,000 100,000 150,000 200,000 250,000 1 2 4 8 0 10 20 30 40 50 1 2 4 8 inside
$ dtsim sweep small.yaml --vary training.micro_batch=1,2 --vary training.precision=fp16,bf16 --vary cluster.nodes=1,2 --format svg
error: --format svg draws one key or two
  help: vary fewer keys, or join some with slashes; --html, --format text and csv take any
[2]
% A page draws more keys: a picture for each value of the others, on the same scale.
$ dtsim sweep small.yaml --vary training.micro_batch=1,2 --vary parallelism.data_parallel=ddp,fsdp --vary cluster.nodes=1,2,4 --html three.html >/dev/null; grep -oE '>(Throughput|parallelism)[^<:]*<' three.html; grep -c '<svg ' three.html; tr -d '\n' <three.html | sed 's/<svg /\n&/g' | grep '^<svg' | grep -oE 'y="[0-9.]+" text-anchor="end"[^>]*>[0-9,.]+<' | sort | uniq -c | awk '{ print ($1 == 2 ? "in both" : "in " $1) }' | sort -u
>Throughput and memory by cluster.nodes, training.micro_batch = 1<
>parallelism.data_parallel = ddp<
>parallelism.data_parallel = fsdp<
>Throughput and memory by cluster.nodes, training.micro_batch = 2<
>parallelism.data_parallel = ddp<
>parallelism.data_parallel = fsdp<
>Throughput and memory by<
>parallelism.data_parallel = ddp<
>parallelism.data_parallel = fsdp<
>Throughput and memory by<
>parallelism.data_parallel = ddp<
>parallelism.data_parallel = fsdp<
4
in both
% A telephone has pictures of half the width, with letters of the same size: no plot of a page has to be scrolled.
$ grep -oE '<div class="fit (desk|phone)"|<svg [^>]* width="[0-9]+"' three.html | sed 's/<svg .* width/  width/'
<div class="fit desk"
  width="960"
  width="960"
<div class="fit phone"
  width="480"
  width="480"
$ dtsim sweep small.yaml --vary training.micro_batch=1,2 --html none/page.html
error: cannot write none/page.html: No such file or directory
  help: make its folder first
[3]
% A name of a profile that exists nowhere is a mistake, not an illegal combination.
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary model=mingpt-large,mingpt-lrage --vary training.micro_batch=4
--vary: error: no profile 'mingpt-lrage' in models/
  help: did you mean 'mingpt-large'?
[1]
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary cluster.profile/training.micro_batch=dgx-a101/4
--vary: error: no profile 'dgx-a101' in hardware/clusters/
  help: did you mean 'dgx-h100'?
[1]
% A GPU of the scenario stays whichever profile is varied; a cluster brings its own.
$ sed 's/^cluster: .*/cluster: {profile: gcp-a2-highgpu-8g, gpu: a100-80gb}/' small.yaml >gpu.yaml; dtsim sweep gpu.yaml --vary cluster.profile=gcp-a2-highgpu-8g,dgx-a100-80gb --format csv 2>&1 >one.csv; dtsim sweep gpu.yaml --vary cluster=gcp-a2-highgpu-8g,dgx-a100-80gb --format csv >/dev/null
gpu.yaml:2:44: warning: every cluster.profile gets the scenario's GPU, a100-80gb [cluster.gpu]
      2 | cluster: {profile: gcp-a2-highgpu-8g, gpu: a100-80gb}
        |                                            ^
  help: vary cluster instead: it takes each profile with its own GPU
% A token of another model or length is other work: each has its own fastest.
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary training.micro_batch=4,8 --vary training.sequence_length=128,256 --width 120 | sed -n '/combinations:/,$p'
4 combinations: 4 simulated, 0 illegal.
Tokens of different models or lengths are different work: of each its fastest.
Fastest that fits: training.micro_batch=8 training.sequence_length=128 (ddp 16).
Fastest that fits: training.micro_batch=8 training.sequence_length=256 (ddp 16).
* nothing else that fits, of the same model and length, is better in throughput, memory and price of a token at once.
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary model=gpt2,gpt2-large --width 120 | sed -n '/combinations:/,$p'
2 combinations: 2 simulated, 0 illegal.
Their tokens are different work: none is the fastest.
* nothing else that fits, of the same model and length, is better in throughput, memory and price of a token at once.
% What stays in fp32 though half precision was asked for is marked, as in searches.
$ printf 'model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 8192}\ncluster: {profile: dgx-a100-40gb, nodes: 1, gpus_per_node: 2}\nstack: torchtitan\ntraining: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: amp-bf16}\n' >wide.yaml
$ dtsim sweep wide.yaml --vary parallelism.data_parallel=ddp,fsdp --width 200 --html wide.html | grep -oE '^  (ddp|fsdp)|GiB.*‡|^‡ in fp32'; grep -c '‡ in fp32' wide.html
  ddp
GiB ‡
  fsdp
‡ in fp32
1
$ dtsim advise wide.yaml --width 200 --html advice.html | grep -oE '^  (DDP|ZeRO) |GiB ‡|^  ‡ in fp32' | head -3; grep -c '‡ in fp32' advice.html
  DDP 
GiB ‡
  ZeRO 
1
$ dtsim search wide.yaml --tokens 1B --clusters dgx-a100-40gb --price 'dgx-a100-40gb=20 USD/h' --nodes 1 --over parallelism.data_parallel=ddp --over parallelism.context=1 --over offload=none --simulate 4 --width 200 --html offers.html | grep -oE '(ddp|fsdp|zero[0-9]) [0-9]+ .*‡|^‡ in fp32' | sed -E 's/ · .* / · /'; grep -c '‡ in fp32' offers.html
ddp 4 · ‡
‡ in fp32
1
% A store of another version, by the number in its header.
$ dtsim sweep gcp-data-parallel/scaling-ddp --vary training.micro_batch=8 --store old.db >old.txt; printf '\0\0\0\3' | dd of=old.db bs=1 seek=60 conv=notrunc status=none; dtsim sweep gcp-data-parallel/scaling-ddp --vary training.micro_batch=8 --store old.db
error: old.db was written by another version of dtsim
  help: name a new file: results of another version are simulated again in any case, and sqlite3 still reads them in this one
[3]
