% Output that cannot be written: exit code 3, and no message when a reader just went away.
$ dtsim list >/dev/full
error: cannot write standard output: No space left on device
  help: name a file on a disk that has room
[3]
$ dtsim --help >/dev/full
error: cannot write standard output: No space left on device
  help: name a file on a disk that has room
[3]
$ dtsim run gcp-data-parallel/scaling-ddp -o no/such/folder/page.txt
error: cannot write no/such/folder/page.txt: No such file or directory
  help: make its folder first
[3]
$ dtsim run gcp-data-parallel/scaling-ddp --trace no/such/folder/trace.json -o page.txt
error: cannot write no/such/folder/trace.json: No such file or directory
  help: make its folder first
[3]
$ dtsim run gcp-data-parallel/scaling-ddp --trace /dev/full -o page.txt
error: cannot write /dev/full: No space left on device
  help: name a file on a disk that has room
[3]
$ dtsim list models | true; echo "${PIPESTATUS[0]}" | grep -E '^(0|3)$' >/dev/null && echo quiet
quiet
$ dtsim list gpus -o gpus.txt --format names && head -1 gpus.txt
a10
% The memory row of a page is as high as a GPU's peak, whatever is offloaded to the host.
$ dtsim run offload/zero-offload-10b --html page.html | grep -o 'optimizer states.*'; grep -oE 'on 1 GPU[^:]*:|a row is ([0-9]|[12][0-9]|3[01])\.[0-9] GiB' page.html | sed 's/is .*/is at most that of the GPU/'
on 1 GPU:
a row is at most that of the GPU
