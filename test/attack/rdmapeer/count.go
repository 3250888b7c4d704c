package rdmapeer

import (
	"sync"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// counterOf names the counter of rdma.Faults that a Terminate Message adds to.
func counterOf(o terminated) string {
	type key struct {
		layer rdmap.Layer
		etype rdmap.EType
		code  uint8
	}
	of := func(o terminated) key { return key{o.layer, o.etype, o.code} }
	return map[key]string{
		of(taggedError(ddp.CodeInvalidSTag)):            "TaggedInvalidSTag",
		of(taggedError(ddp.CodeBaseBounds)):             "TaggedBounds",
		of(taggedError(ddp.CodeNotAssociated)):          "TaggedNotAssociated",
		of(taggedError(ddp.CodeTOWrap)):                 "TaggedWrap",
		of(taggedError(ddp.CodeTaggedVersion)):          "TaggedVersion",
		of(untaggedError(ddp.CodeInvalidQN)):            "UntaggedInvalidQueue",
		of(untaggedError(ddp.CodeNoBuffer)):             "UntaggedNoBuffer",
		of(untaggedError(ddp.CodeMSNRange)):             "UntaggedMSN",
		of(untaggedError(ddp.CodeInvalidMO)):            "UntaggedOffset",
		of(untaggedError(ddp.CodeTooLong)):              "UntaggedTooLong",
		of(untaggedError(ddp.CodeUntaggedVersion)):      "UntaggedVersion",
		of(protectionError(rdmap.CodeInvalidSTag)):      "SourceInvalidSTag",
		of(protectionError(rdmap.CodeBounds)):           "SourceBounds",
		of(protectionError(rdmap.CodeAccess)):           "SourceAccess",
		of(protectionError(rdmap.CodeNotAssociated)):    "SourceNotAssociated",
		of(protectionError(rdmap.CodeTOWrap)):           "SourceWrap",
		of(protectionError(rdmap.CodeCannotInvalidate)): "CannotInvalidate",
		of(operationError(rdmap.CodeInvalidVersion)):    "Version",
		of(operationError(rdmap.CodeUnexpectedOpcode)):  "Opcode",
		of(operationError(rdmap.CodeUnspecified)):       "Unspecified",
		of(operationError(rdmap.CodeCatastrophic)):      "RemoteCatastrophic",
	}[of(o)]
}

// seen are the counters that attacks of any test have driven.
var seen struct {
	sync.Mutex
	names map[string]bool
}

// checkCounted checks that the victim has counted the fault. What has increased since the last look
// is to be claimed by one check each.
func (o terminated) checkCounted(x *target) {
	x.t.Helper()
	name := counterOf(o)
	before, now := x.attackLab.faults, x.b.Stats().Faults
	x.attackLab.faults = now
	old := map[string]uint64{}
	counters.Each(before, func(name string, v uint64) { old[name] = v })
	counters.Each(now, func(name string, v uint64) { x.attackLab.unclaimed[name] += int(v - old[name]) })
	if x.attackLab.unclaimed[name] == 0 {
		x.t.Errorf("%+v is not counted as %q: %+v", o, name, now)
		return
	}
	x.attackLab.unclaimed[name]--
	seen.Lock()
	seen.names[name] = true
	seen.Unlock()
}

// Faults that no attack can bring about; package rdma shows that they count.
var inside = map[string]bool{"LocalCatastrophic": true, "Setup": true, "Other": true, "CRC": true, "Marker": true}
