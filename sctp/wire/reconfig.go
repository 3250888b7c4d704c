package wire

// Reconfig is a view of a RE-CONFIG chunk (RFC 6525 section 3.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Type = 130   |  Chunk Flags  |         Chunk Length          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                                                               \
//	/                  Re-configuration Parameter                   /
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                                                               \
//	/             Re-configuration Parameter (optional)             /
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Reconfig []byte

// AsReconfig returns c as a RE-CONFIG chunk that holds one or two well-formed parameters. They must
// be one of the ten combinations that RFC 6525 allows, else it returns ErrReconfigCombination.
// AsOutgoingReset and the like check the contents of the parameters.
func AsReconfig(c Chunk) (Reconfig, error) {
	if err := asChunk(c, ChunkReconfig, ChunkHeaderLen, MaxChunkLen); err != nil {
		return nil, err
	}
	var types [2]ParamType
	n := 0
	params := Reconfig(c).Params()
	for p, ok := params.Next(); ok; p, ok = params.Next() {
		if n == len(types) {
			return nil, ErrReconfigCombination
		}
		types[n] = p.Type()
		n++
	}
	if err := params.Err(); err != nil {
		return nil, err
	}
	if !reconfigAllowed(types[:n]) {
		return nil, ErrReconfigCombination
	}
	return Reconfig(c), nil
}

// reconfigAllowed reports whether the parameters may stand together, in this order (RFC 6525
// section 3.1).
func reconfigAllowed(types []ParamType) bool {
	if len(types) == 0 {
		return false
	}
	first := types[0]
	if len(types) == 1 {
		return first >= ParamOutgoingReset && first <= ParamAddInStreams
	}
	switch second := types[1]; first {
	case ParamOutgoingReset:
		return second == ParamIncomingReset
	case ParamAddOutStreams:
		return second == ParamAddInStreams
	case ParamReconfigResponse:
		return second == ParamOutgoingReset || second == ParamReconfigResponse
	}
	return false
}

// Params returns an iterator over the one or two parameters.
func (r Reconfig) Params() Params { return Params{tlvReader{rest: r[ChunkHeaderLen:]}} }

// AppendReconfig appends the header of a RE-CONFIG chunk. Append one or two parameters, then call
// CloseChunk.
func AppendReconfig(b []byte) []byte {
	return appendChunkHeader(b, ChunkReconfig, 0, ChunkHeaderLen)
}
