package rdmap

import "github.com/rddp-go/rddp/ddp"

// resolveSGL makes the local protection checks for a scatter/gather list and appends its pieces to
// g. Empty pieces name no memory and are left out. most is the largest number of pieces.
func resolveSGL(s *ddp.Stream, g ddp.Gather, most int, sgl []SGE, need ddp.Access) (ddp.Gather, uint32, error) {
	if len(sgl) > most {
		return g, 0, ErrSGECount
	}
	var total uint64
	for i, e := range sgl {
		if e.Len == 0 {
			continue
		}
		p, err := s.Resolve(e.LKey, e.Addr, uint64(e.Len), need)
		if err != nil {
			return g, 0, &SGEError{i, localReason(s, e.LKey, err)}
		}
		g = append(g, p)
		total += uint64(e.Len)
	}
	if total > 1<<32-1 {
		return g, 0, ErrTooLong
	}
	return g, uint32(total), nil
}

func localReason(s *ddp.Stream, lkey ddp.STag, err *ddp.Error) error {
	switch err.Code {
	case ddp.CodeNotAssociated:
		return ErrPD
	case ddp.CodeBaseBounds, ddp.CodeTOWrap:
		return ErrBounds
	}
	if r := s.Table().Lookup(lkey); r != nil && r.Valid() {
		return ErrAccess
	}
	return ErrLKey
}
