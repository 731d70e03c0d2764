package bench

import (
	"net/http/httptest"

	"github.com/environment-broker/environment-broker/internal/sandbox/fakeavs"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeedp"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakeias"
	"github.com/environment-broker/environment-broker/internal/sandbox/fakereconciler"
	"github.com/environment-broker/environment-broker/internal/sandbox/simulator"
	"github.com/environment-broker/environment-broker/test/bench/report"
	"github.com/environment-broker/environment-broker/test/bench/simulated"
	"github.com/environment-broker/environment-broker/test/harness"
)

// measureIntegrations measures how much the integrations add to the cost of an operation. A broker without integrations, and one
// with all integrations that a create uses, create the same number of instances. The integrated systems respond immediately, and
// the Reconciler installs Kyma. The account pool is disabled, because it needs a garden.
func measureIntegrations(s *scope) {
	const size = 500

	s.rounds(func(s *scope) {
		var without, with cost

		s.within(func(s *scope) {
			e := s.start(simulated.Behaviour{})
			without = e.costOf(size, creates(e.broker.url, manyTenants))
		})
		s.within(func(s *scope) {
			e := s.prepare(simulated.Behaviour{})
			e.broker = s.startBroker(e, s.integrations()...)
			with = e.costOf(size, createsWith(e.broker.url, manyTenants, func(body, context map[string]any) {
				body["plan_id"] = harness.PlanPreview
				context["sm_operator_credentials"] = map[string]string{
					"clientid": "client", "clientsecret": "secret", "sm_url": "https://sm.example.com", "url": "https://tokens.example.com",
				}
			}))
		})

		s.add(report.Figure{Name: "creates with all integrations: operations/s", Note: "the broker reads the state of the Reconciler every 30 s"}, with.rate)
		s.add(report.Figure{Name: "creates with all integrations: commits per operation", AtMost: 25}, with.commits)
		s.add(report.Figure{Name: "creates with all integrations: CPU time of the broker per operation", Unit: "ms"}, with.broker)
		s.add(report.Figure{
			Name: "creates with all integrations: CPU time of the broker, compared to no integrations", Unit: "%", AtMost: 300,
		}, 100*with.broker/without.broker)
	})
}

// integrations runs simulators of all integrated systems until the scope ends, and returns the environment variables that connect a
// broker to them.
func (s *scope) integrations() []string {
	server := httptest.NewServer(simulator.NewHandler(fakeavs.New(), fakeedp.New(), fakeias.New(), fakereconciler.New()))
	s.Cleanup(server.Close)

	avs := server.URL + "/avs"

	return []string{
		"APP_GARDENER_SHOOT_DOMAIN=example.com",
		"APP_AVS_API_ENDPOINT=" + avs + fakeavs.API,
		"APP_AVS_OAUTH_TOKEN_ENDPOINT=" + avs + fakeavs.Token,
		"APP_AVS_OAUTH_CLIENT_ID=" + fakeavs.ClientID,
		"APP_AVS_OAUTH_USERNAME=" + fakeavs.User,
		"APP_AVS_OAUTH_PASSWORD=" + fakeavs.Password,
		"APP_AVS_GROUP_ID=1", "APP_AVS_PARENT_ID=2",
		"APP_AVS_INTERNAL_TESTER_ACCESS_ID=3", "APP_AVS_EXTERNAL_TESTER_ACCESS_ID=4",
		"APP_AVS_ADDITIONAL_TAGS_ENABLED=true", "APP_AVS_GARDENER_SHOOT_NAME_TAG_CLASS_ID=11",
		"APP_AVS_GARDENER_SEED_NAME_TAG_CLASS_ID=12", "APP_AVS_REGION_TAG_CLASS_ID=13",
		"APP_EDP_AUTH_URL=" + server.URL + "/edp",
		"APP_EDP_ADMIN_URL=" + server.URL + "/edp",
		"APP_EDP_NAMESPACE=" + fakeedp.Namespace,
		"APP_EDP_SECRET=" + fakeedp.Secret,
		"APP_IAS_URL=" + server.URL + "/ias",
		"APP_IAS_USER_ID=" + fakeias.User,
		"APP_IAS_USER_SECRET=" + fakeias.Secret,
		"APP_RECONCILER_URL=" + server.URL + "/reconciler", "APP_KYMA_INSTALLER=reconciler", "APP_KYMA_VERSION=1.1.0",
	}
}
