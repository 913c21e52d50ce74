% Ctrl-C prints the best so far, says that it was interrupted, and exits with 130; so do SIGTERM and SIGHUP, with 143 and
% 129. These searches would take hours.
$ printf 'model: {profile: llama, layers: 24, hidden: 2048, heads: 16, vocab: 32000}\ncluster: {profile: dgx-a100-40gb, nodes: 8}\nstack: pytorch-2\ntraining: {global_batch: 512, micro_batch: 1, sequence_length: 1024, precision: bf16}\n' >long.yaml
$ timeout --preserve-status -s INT 5 dtsim search long.yaml --method mcmc --simulate 1000000 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
$ timeout --preserve-status -s TERM 5 dtsim search long.yaml --space soap --proposals 1000000000 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[143]
$ timeout --preserve-status -s HUP 5 dtsim search long.yaml --set training.global_batch=1536 --set cluster.nodes=512 --simulate 0 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[129]
$ timeout --preserve-status -s INT 5 dtsim search long.yaml --tokens 1e9 --nodes 1..512 --simulate 10000 2>/dev/null | grep -c '^Interrupted'; exit ${PIPESTATUS[0]}
1
[130]
% How much is done, and how to go on.
$ timeout --preserve-status -s TERM 5 dtsim search long.yaml --tokens 1e9 --nodes 1..512 --simulate 10000 2>&1 >/dev/null | sed -E 's/: [0-9]+ of/: N of/' | grep -A1 interrupted
warning: interrupted: N of 512 offers searched
  help: the same command begins anew; with --store FILE.db it would go on from there
$ timeout --preserve-status -s TERM 5 dtsim sweep long.yaml --vary training.global_batch=512..200000*2 --vary training.micro_batch=1..64 --vary parallelism.tensor=1..8 --vary parallelism.pipeline=1..8 --format csv 2>&1 >/dev/null | sed -E 's/: [0-9]+ of/: N of/' | grep -A1 interrupted
warning: interrupted: N of 36864 combinations are done
  help: the same command begins anew; with --store FILE.db it would go on from there
% Rows that have not been simulated are none of the table's errors; advice and maps stop as well.
$ (echo id,model,model.layers,cluster,stack,training.global_batch,training.micro_batch,training.sequence_length,measured.iteration_s; for i in $(seq 4000); do echo "r$i,\"{profile: gpt, hidden: 768, heads: 12, vocab: 50257}\",960,dgx-a100-80gb,pytorch-2,64,2,1024,0.1"; done) >rows.csv
$ timeout --preserve-status -s TERM 5 dtsim validate rows.csv --worst 1 --record record.csv 2>&1 >table | sed -E 's/: [0-9]+ rows/: N rows/'; grep -c interrupted: table; ls record.csv; exit ${PIPESTATUS[0]}
warning: interrupted: N rows are left out
  help: the same command begins anew; --record wrote nothing
1
ls: cannot access 'record.csv': No such file or directory
[2]
$ timeout --preserve-status -s TERM 5 dtsim validate rows.csv --format json >/dev/null 2>&1
[143]
$ timeout --preserve-status -s TERM 5 dtsim map A=long.yaml B=long.yaml --down training.micro_batch=1..64 --across training.sequence_length=64..4096+64 >/dev/null 2>&1
[143]
$ timeout --preserve-status -s HUP 5 dtsim advise long.yaml --set fidelity.detail=kernel --set model.layers=192 --set training.global_batch=4096 >/dev/null 2>&1
[129]
% What is started with SIGHUP ignored, as by nohup, goes on.
$ (trap '' HUP; dtsim sweep long.yaml --vary training.global_batch=512..200000*2 --vary training.micro_batch=1..64 --vary parallelism.tensor=1..8 --vary parallelism.pipeline=1..8 >/dev/null 2>&1 & sleep 1; kill -HUP $!; sleep 1; kill -KILL $! && echo went on)
went on
