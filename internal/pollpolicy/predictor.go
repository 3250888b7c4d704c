package pollpolicy

// predictor is something that pays or does not, which is told from how it went of late. While it
// does not, it is made now and then all the same: so it is known when it does.
type predictor struct {
	score   int // times less those that it was lost, from 0 to maxScore
	skipped int // it was not to be made
}

const (
	maxScore    = 16
	scoreNeeded = 8
	retryEvery  = 8
)

// shouldTry says whether to make it. tell follows on that.
func (b *predictor) shouldTry() bool {
	if b.score >= scoreNeeded {
		return true
	}
	b.skipped++
	return b.skipped%retryEvery == 0
}

func (b *predictor) recordOutcome(won bool) {
	if won {
		b.score = min(b.score+1, maxScore)
	} else {
		b.score = max(b.score-1, 0)
	}
}
