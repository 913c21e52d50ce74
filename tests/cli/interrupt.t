% Ctrl-C prints the best so far, says that it was interrupted, and exits with 130. These searches would take hours.
$ printf 'model: {profile: llama, layers: 24, hidden: 2048, heads: 16, vocab: 32000}\ncluster: {profile: dgx-a100-40gb, nodes: 8}\nstack: pytorch-2\ntraining: {global_batch: 512, micro_batch: 1, sequence_length: 1024, precision: bf16}\n' >long.yaml
$ timeout --preserve-status -s INT 5 dtsim search long.yaml --method mcmc --simulate 1000000 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
$ timeout --preserve-status -s INT 5 dtsim search long.yaml --space soap --proposals 1000000000 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
$ timeout --preserve-status -s INT 2 dtsim search long.yaml --set training.global_batch=1536 --set cluster.nodes=512 --simulate 0 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
$ timeout --preserve-status -s INT 2 dtsim search long.yaml --tokens 1e9 --nodes 1..512 --simulate 10000 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
