package pollpolicy

// predictor decides whether to do something that pays or does not, from how it recently went. While
// it does not pay, it is tried now and then all the same, to notice when it does.
type predictor struct {
	score   int // wins less losses, from 0 to maxScore
	skipped int // how often it was not done
}

const (
	maxScore    = 16
	scoreNeeded = 8
	retryEvery  = 8
)

// shouldTry says whether to do it. recordOutcome follows.
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
