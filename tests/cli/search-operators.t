% Strategies that cut every operator by itself.
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --proposals 300 --chains 6
alexnet-16: every operator cut by itself
...
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --proposals 200 --chains 6 --threads 1 --format json >one
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --proposals 200 --chains 6 --threads 3 --format json >three
$ cmp one three
% The answer as a web page: a box for every operator, bars of every GPU, and nothing from elsewhere.
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --proposals 200 --chains 6 --html page.html >/dev/null; grep -c '<g><title>' page.html; grep -c '<h2>' page.html; grep -cE 'https?:|<script|<link' page.html
23
5
0
[1]
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --method exhaustive
error: there are 10^48.4 strategies, and all of them are tried up to 20000000 only
  help: --method mcmc searches them by chance
[1]
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --space layouts
error: a graph of operators has no layers to lay out
  help: use --space soap
[2]
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --objective cost
error: --objective is not for --space soap
  help: leave it out, or use --space layouts
[2]
$ dtsim run $DATA/scenarios/operators/alexnet-16.yaml
$DATA/scenarios/operators/alexnet-16.yaml:7:8: error: operators without layers cannot be laid out by `parallelism` [graph]
      7 | graph: alexnet
        |        ^
  help: dtsim search --space soap searches it; run simulates a `model`
[1]
$ dtsim search $DATA/scenarios/gcp-data-parallel/scaling-ddp.yaml --space soap --proposals 30 --chains 5 --set cluster.nodes=1
scaling-ddp: every operator cut by itself
  mingpt-large, 293 operators, 834 million parameters, 128 samples on 8 ×
  A100-SXM4-40GB: 10^516 strategies

...
$ dtsim search $DATA/scenarios/planning/llama-3-8b.yaml --set model=mixtral-8x7b --space soap
error: a mixture of experts is not described operator by operator
  help: --space layouts searches it
[1]
$ dtsim search $DATA/scenarios/operators/googlenet-16.yaml --set cluster.nodes=1000 --proposals 1
--set: error: operator-level strategies are simulated for up to 1024 GPUs, not 8000 [cluster.nodes]
  help: search --space layouts is for large clusters
[1]
$ printf 'name: bad\noperators:\n  - {name: x, type: input, shape: [3, 8, 8]}\n  - {name: c, type: conv2d, features: 4, kernel: 11}\n' >bad.yaml
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --set graph=./bad.yaml
./bad.yaml:4:12: error: the window of 'c' does not fit its input [graph.operators[1]]
      4 |   - {name: c, type: conv2d, features: 4, kernel: 11}
        |            ^
  help: 1 <= kernel <= side of the input + 2 x padding, padding < kernel
[1]
$ printf 'name: bad\noperators:\n  - {name: x, type: input, shape: [16]}\n  - {name: a, type: linear, features: 4, inputs: [y]}\n' >bad.yaml
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --set graph=./bad.yaml
./bad.yaml:4:12: error: no operator before this one is called 'y' [graph.operators[1]]
      4 |   - {name: a, type: linear, features: 4, inputs: [y]}
        |            ^
  help: an operator stands behind all operators that it reads
[1]
$ printf 'name: bad\noperators:\n  - {name: x, type: input, shape: [16]}\n  - {name: a, type: linear}\n' >bad.yaml
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --set graph=./bad.yaml
./bad.yaml:4:12: error: 'a' needs features [graph.operators[1]]
      4 |   - {name: a, type: linear}
        |            ^
  help: features: the width of its output
[1]
$ printf 'name: bad\noperators:\n  - {name: x, type: input, shape: [16]}\n  - {name: a, type: linear, features: 4}\n  - {name: s, type: add, inputs: [x, a]}\n' >bad.yaml
$ dtsim search $DATA/scenarios/operators/alexnet-16.yaml --set graph=./bad.yaml
./bad.yaml:5:12: error: the inputs of 's' have different shapes [graph.operators[2]]
      5 |   - {name: s, type: add, inputs: [x, a]}
        |            ^
  help: all inputs need one shape (concat: up to the second dimension)
[1]
