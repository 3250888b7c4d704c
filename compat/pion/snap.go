package sctp

import stack "github.com/rddp-go/rddp/sctp"

// GenerateOutOfBandToken returns the INIT chunk of an association to be set up by WithSNAP.
func GenerateOutOfBandToken(opts ...ClientOption) ([]byte, error) {
	s, err := settingsOf(opts, ClientOption.setForClient)
	if err != nil {
		return nil, err
	}
	return stack.NewInit(stackConfig(s), linkConfig(s).ErrorDetection)
}
