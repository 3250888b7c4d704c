module github.com/rddp-go/rddp/fuzz/aim/pion

go 1.26

require (
	github.com/pion/logging v0.2.2
	github.com/pion/sctp v1.8.16
)

require github.com/pion/randutil v0.1.0 // indirect
