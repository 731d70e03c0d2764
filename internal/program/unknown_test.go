package program_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/environment-broker/environment-broker/internal/program"
)

func TestWarnUnknown(t *testing.T) {
	t.Parallel()

	link := []string{
		"APP_SERVICE_HOST=10.0.0.1", "APP_SERVICE_PORT=80", "APP_SERVICE_PORT_HTTP=80", "APP_PORT=tcp://10.0.0.1:80",
		"APP_PORT_80_TCP=tcp://10.0.0.1:80", "APP_PORT_80_TCP_PROTO=tcp", "APP_PORT_80_TCP_PORT=80", "APP_PORT_80_TCP_ADDR=10.0.0.1",
		"APP_MY_DB_SERVICE_HOST=10.0.0.2", "APP_MY_DB_SERVICE_PORT=53", "APP_MY_DB_PORT=udp://10.0.0.2:53", "APP_MY_DB_PORT_53_UDP=udp://10.0.0.2:53",
	}

	cases := map[string]struct {
		reason      string
		environment []string
		want        []string
	}{
		"known":   {"all variables of the configuration", []string{"APP_ADDRESS=a", "APP_DATABASE_HOST=h", "APP_FORMER_WORKERS=1"}, nil},
		"prefix":  {"other programs have other prefixes", []string{"APPLICATION=x", "HOME=/", "XAPP_LIMIT=1"}, nil},
		"empty":   {"an empty variable never has an effect", []string{"APP_LIMITS="}, nil},
		"service": {"Kubernetes sets variables for Services", link, nil},
		"misspelled": {
			"the warning names the similar variable, and no value",
			[]string{"APP_DATABASE_SSLMODE=hush", "APP_WORKRES=9"},
			[]string{
				`unknown environment variable APP_DATABASE_SSLMODE has no effect; did you mean "APP_DATABASE_SSL_MODE"?`,
				`unknown environment variable APP_WORKRES has no effect; did you mean "APP_WORKERS"?`,
			},
		},
		"removed": {
			"no variable is similar", []string{"APP_SOMETHING_ELSE=1"}, []string{`unknown environment variable APP_SOMETHING_ELSE has no effect`},
		},
		"port": {
			"without a host, it is not the variable of a Service",
			[]string{"APP_DATABSE_PORT=5433"},
			[]string{`unknown environment variable APP_DATABSE_PORT has no effect; did you mean "APP_DATABASE_PORT"?`},
		},
		"next to a service": {
			"only the variables of Services are ignored", append([]string{"APP_PORT_RANGE=1"}, link...),
			[]string{`unknown environment variable APP_PORT_RANGE has no effect`},
		},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			log, hook := logtest.NewNullLogger()
			program.WarnUnknown(log, program.Prefix, defaults(), c.environment)

			var got []string
			for _, entry := range hook.AllEntries() {
				got = append(got, entry.Message)
			}

			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
		})
	}
}
