module throng.invalid/peers/echo

go 1.22
