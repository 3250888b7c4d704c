// Command inventory lists what a rename or a move can lose without a test that fails: names of
// tests, fuzz targets with their corpora, golden files, citations, faults, and what each make target
// runs. Compare its output from before and after such a change; each difference is to be explained.
//
//	go run ./test/inventory > before
//	go test -json ./... > run.json && go run ./test/inventory -ran run.json > before  # with subtests
//
// Its own tests fail where a command in a script or document runs tests that are not there, where a
// corpus has no target, or where make runs a test by none of its targets.
package main
