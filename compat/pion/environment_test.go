package sctp

import (
	"fmt"
	"strings"
	"testing"
)

func TestCongestionControlByEnvironment(t *testing.T) {
	for _, row := range []struct{ name, want string }{
		{"", "<nil>"}, {"cubic", "*cc.cubic"}, {"newreno", "*cc.newReno"}, {"rfc9260", "*cc.newReno"},
		{"bbr", "*cc.bbr"},
	} {
		t.Run("is "+row.name, func(t *testing.T) {
			t.Setenv(controllerVariable, row.name)
			s, err := settingsOf([]ClientOption{}, ClientOption.setForClient)
			if err != nil {
				t.Fatal(err)
			}
			got := "<nil>"
			if f := stackConfig(s).NewController; f != nil {
				got = fmt.Sprintf("%T", f(1000, false))
			}
			if got != row.want {
				t.Errorf("the controller is %s, want %s", got, row.want)
			}
		})
	}
	t.Setenv(controllerVariable, "vegas")
	if _, err := Client(Config{}); err == nil || !strings.Contains(err.Error(), `RDDP_CC is "vegas"`) {
		t.Errorf("an unknown name: %v", err)
	}
}
