% Fitting a number to a table that was made with another one (1.7 GB/s), and using what comes out.
$ printf 'id,model,cluster,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.precision,training.optimizer,measured.iteration_s\n' >head.csv
$ for n in 1 2 4; do for b in 4 8; do echo "r$n$b,mingpt-small,gcp-a2-highgpu-8g,$n,pytorch-1.11,$((8*n*b)),$b,256,fp16,sgd"; done; done >rows.csv
$ (cat head.csv; sed 's/$/,1/' rows.csv) >ones.csv; dtsim validate ones.csv --set cluster.inter.flow_cap="1.7 GB/s" --format json | sed -nE 's/.*"predicted":\s*([0-9.e-]+).*/\1/p' | paste -d, rows.csv - >made.csv; cat head.csv made.csv >t.csv; wc -l <t.csv
7
$ dtsim calibrate t.csv --fit cluster.inter.flow_cap --profile net.yaml | sed "s|[0-9][0-9]* simulations|# simulations|; s|before.*|before|; s|after  .*|after|; s|2.15 GB/s|#|; s|GB/s .*|GB/s|"
t.csv (6 rows): 6 measured values, 1 parameter; # simulations

Parameters (error: standard error of the fitted value)
  parameter                   start    fitted      error         low      high
  cluster.inter.flow_cap  #  1.7 GB/s

Mean error of the predictions
  before
  after
  held out    0.0 %  (each of 5 parts predicted by a fit on the others)
$ sed -E 's/mean error.*/…/' net.yaml
extends: "gcp-a2-highgpu-8g"
inter:
  flow_cap: {value: 1.7 GB/s, source: "fitted by dtsim calibrate on t.csv (6 rows); …
$ dtsim validate t.csv --set cluster=./net.yaml | grep -c '0.0 %'
2
$ for n in 1 3; do dtsim calibrate t.csv --fit cluster.inter.flow_cap --threads $n --format json | cksum; done | sort -u | wc -l
1
$ dtsim calibrate t.csv --fit stack.launch --fit cluster.inter.flow_cap --profile both.yaml >both.txt; sed "s/: {.*/: …/" both.yaml
# A part of a scenario: `extends: ./THIS-FILE` takes it.
stack:
  launch: …
cluster:
  inter:
    flow_cap: …
$ dtsim calibrate t.csv --fit cluster.inter.flow_cap --where cluster.nodes=1
error: the data cannot determine it: no prediction changes between its bounds [cluster.inter.flow_cap]
  help: leave it out, or add rows that depend on it
[1]
% One of two is refused, the other fitted.
$ dtsim calibrate t.csv --fit cluster.inter.flow_cap --fit cluster.gpu.pcie_bandwidth --folds 0 | sed -n '/cap/p; /Refused/,/^$/p' | sed 's/1.7 GB.*/1.7 GB/'
  cluster.inter.flow_cap  2.15 GB/s  1.7 GB
Refused, left as they are
  cluster.gpu.pcie_bandwidth: the data cannot determine it: no prediction changes between its bounds
    help: leave it out, or add rows that depend on it
$ dtsim calibrate t.csv --fit cluster.gpu.pcie_bandwidth --fit cluster.inter.flow_cap --folds 0 --format json | sed -n '/refused/,/]/p'
	"refused":	[{
			"key":	"cluster.gpu.pcie_bandwidth",
			"reason":	"the data cannot determine it: no prediction changes between its bounds",
			"help":	"leave it out, or add rows that depend on it"
		}],
% Wrong usage.
$ dtsim calibrate t.csv
error: nothing to fit: --fit KEY is missing
  help: e.g. --fit stack.launch --fit cluster.gpu.gemm.max_efficiency=0.6:1
[2]
$ dtsim calibrate --fit stack.launch
error: no table given
  help: `dtsim validate --help` says what a table looks like
[2]
$ dtsim calibrate t.csv --fit stack.launch=5
error: --fit stack.launch: '5' is not LOW:HIGH
  help: e.g. --fit stack.launch="2 us:40 us"
[2]
$ dtsim calibrate t.csv --fit stack.launch="1 GB:2 GB"
error: --fit stack.launch: expected a time, got a size: '1 GB'
  help: write a time such as 5 us or 1.5 ms
[2]
$ dtsim calibrate t.csv --fit stack.launch --fit stack.launch
error: --fit stack.launch is given twice
[2]
$ dtsim calibrate t.csv --fit stack.launch --by stak
error: rows cannot be grouped by 'stak': there is no such key
  help: a dotted scenario key such as cluster, stack or parallelism.tensor, or table
[1]
% A filter that no row passes.
$ dtsim calibrate $DATA/scenarios/published/trl-long-context.csv --fit stack.launch --where model=nope 2>&1
error: no row of the tables has what --where asks for
  help: take another --where, or leave it out
[1]
