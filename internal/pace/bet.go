package pace

// bet is something that pays or does not, which is told from how it went of late. While it does not, it is made now and then all the same: so it is known
// when it does.
type bet struct {
	won   int // times less those that it was lost, from 0 to betMost
	times int // it was not to be made
}

const (
	betMost   = 16
	betEnough = 8
	betEvery  = 8
)

// on says whether to make it. tell follows on that.
func (b *bet) on() bool {
	if b.won >= betEnough {
		return true
	}
	b.times++
	return b.times%betEvery == 0
}

func (b *bet) tell(won bool) {
	if won {
		b.won = min(b.won+1, betMost)
	} else {
		b.won = max(b.won-1, 0)
	}
}
