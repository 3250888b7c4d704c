package assoc

// AgreeOn makes an established association one that has agreed on extensions, before it has
// received any DATA.
func (a *Assoc) AgreeOn(peerAbandons, interleaving bool) {
	a.sender()
	a.agreed.peerAbandons, a.agreed.interleaving = peerAbandons, interleaving
	a.recv.Restart(a.receiverConfig(a.recv.CumTSN() + 1))
}
