% A file is replaced when all of the new one is written: its mode stays, and so do links.
$ printf 'model: mingpt-small\ncluster: gcp-a2-highgpu-8g\nstack: pytorch-1.11\ntraining: {global_batch: 32, micro_batch: 4, sequence_length: 64}\n' >small.yaml
$ umask 027; dtsim run small.yaml --html new.html >/dev/null; stat -c %a new.html
640
$ echo old >page.html; chmod 604 page.html; ln -s page.html link.html; mkdir far; ln -s ../link.html far/link.html
$ dtsim run small.yaml --html far/link.html >/dev/null; stat -c '%F %a' page.html; stat -c %F link.html far/link.html; cmp page.html new.html
regular file 604
symbolic link
symbolic link
$ ln -s to-come.json dangling.json; dtsim run small.yaml --format json -o dangling.json; stat -c %F dangling.json to-come.json
symbolic link
regular file
% What cannot be written whole is not written: a limit on the size of files stands for a full disk.
$ echo old >page.html; (ulimit -f 8; dtsim run small.yaml --html page.html >/dev/null); echo $?; cat page.html
error: cannot write page.html: File too large
  help: name a file on a disk that has room
3
old
$ (ulimit -f 8; dtsim run small.yaml --trace trace.json >/dev/null); ls -A | grep -E '^trace|^[.]'
error: cannot write trace.json: File too large
  help: name a file on a disk that has room
[1]
$ (ulimit -f 8; dtsim run small.yaml --dump hops >/dev/null); ls -A hops
error: cannot write hops/2-scenario.yaml: File too large
  help: name a file on a disk that has room
1-document.yaml
% What is no plain file is written directly.
$ dtsim run small.yaml --format csv -o /dev/stdout | head -c 8
scenario
$ ln -s /dev/stdout out; dtsim run small.yaml --format csv -o out >all; head -c 8 all; stat -c ' %F' out
scenario symbolic link
$ dtsim run small.yaml --html /dev/full >/dev/null
error: cannot write /dev/full: No space left on device
  help: name a file on a disk that has room
[3]
$ mkfifo pipe; head -c 15 pipe & dtsim run small.yaml --html pipe >/dev/null; wait; stat -c ' %F' pipe
<!doctype html> fifo
