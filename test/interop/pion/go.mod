module github.com/rddp-go/rddp/test/interop/pion

go 1.26.0

require (
	github.com/pion/logging v0.2.4
	github.com/pion/sctp v1.12.1
	github.com/rddp-go/rddp v0.1.0
	github.com/spf13/pflag v1.0.10
)

require (
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pion/transport/v5 v5.1.4 // indirect
)

replace github.com/rddp-go/rddp v0.1.0 => ../../..
