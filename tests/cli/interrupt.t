% Ctrl-C prints the best so far, says that it was interrupted, and exits with 130. These searches would take hours.
$ printf 'model: {profile: llama, layers: 24, hidden: 2048, heads: 16, vocab: 32000}\ncluster: {profile: dgx-a100-40gb, nodes: 8}\nstack: pytorch-2\ntraining: {global_batch: 512, micro_batch: 1, sequence_length: 1024, precision: bf16}\n' >long.yaml
$ timeout --preserve-status -s INT 5 dtsim search long.yaml --method mcmc --simulate 1000000 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
$ timeout --preserve-status -s INT 5 dtsim search long.yaml --space soap --proposals 1000000000 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
$ timeout --preserve-status -s INT 5 dtsim search long.yaml --set training.global_batch=1536 --set cluster.nodes=512 --simulate 0 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
$ timeout --preserve-status -s INT 5 dtsim search long.yaml --tokens 1e9 --nodes 1..512 --simulate 10000 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
% How much is done, and how to go on.
$ timeout --preserve-status -s INT 5 dtsim search long.yaml --tokens 1e9 --nodes 1..512 --simulate 10000 2>&1 >/dev/null | sed -E 's/: [0-9]+ of/: N of/' | grep -A1 interrupted
warning: interrupted: N of 512 offers searched
  help: the same command begins anew; with --store FILE.db it would go on from there
$ timeout --preserve-status -s INT 5 dtsim sweep long.yaml --vary training.global_batch=512..200000*2 --vary training.micro_batch=1..64 --vary parallelism.tensor=1..8 --vary parallelism.pipeline=1..8 --format csv 2>&1 >/dev/null | sed -E 's/: [0-9]+ of/: N of/' | grep -A1 interrupted
warning: interrupted: N of 36864 combinations are done
  help: the same command begins anew; with --store FILE.db it would go on from there
