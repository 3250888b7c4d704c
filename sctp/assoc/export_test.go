package assoc

// AgreeOn makes an established association one that has agreed on extensions, before it has
// received any DATA.
func (a *Assoc) AgreeOn(abandons, interleaves bool) {
	a.sender()
	if a.agreed.extensions = 0; abandons {
		a.agreed.extensions |= PartialReliability
	}
	if interleaves {
		a.agreed.extensions |= Interleaving
	}
	a.recv.Restart(a.receiverConfig(a.recv.CumTSN() + 1))
}
