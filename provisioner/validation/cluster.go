package validation

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/environment-broker/environment-broker/provisioner/shoot"
	"github.com/environment-broker/environment-broker/provisioner/spec"
)

// maxNames is how long the names of Shoot and project may be together: Gardener builds the names of cloud resources of them.
const maxNames = 21

// cluster finds what is wrong with the Shoot. Its fields stand in clusterConfig.gardenerConfig, which the messages leave out.
func (p *problems) cluster(config *spec.Cluster, rules Rules) {
	p.within = "clusterConfig.gardenerConfig."
	defer func() { p.within = "" }()

	first := shoot.FirstPool(config)
	p.name(config.Name, rules.Project)
	p.version(config.KubernetesVersion)
	p.present("region", config.Region)
	p.binding(config.TargetSecret)
	p.machines("", first, config.Provider)
	p.workers("", first)
	p.oneOf("purpose", config.Purpose, purposes()...)
	p.oneOf("controlPlaneFailureTolerance", config.ControlPlaneFailureTolerance, "node", "zone")
	p.additionalWorkers(config, p.provider(config))
	p.identityProvider(config.OIDCConfig)
	p.domain(config.DNSConfig)
}

func purposes() []string { return []string{"evaluation", "testing", "development", "production"} }

func (p *problems) name(name, project string) {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		p.add("name", "%q cannot name a Shoot: %s", name, wrong[0])
	}

	if strings.Contains(name, "--") {
		p.add("name", "must not hold two hyphens in a row")
	}

	if length := len(name) + len(project); length > maxNames {
		p.add("name", "has, with the project's name %q, %d characters, at most %d are allowed", project, length, maxNames)
	}
}

func (p *problems) version(version string) {
	if !regexp.MustCompile(`^[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,4})?$`).MatchString(version) {
		p.add("kubernetesVersion", "must look like 1.33 or 1.33.2, not %q", version)
	}
}

func (p *problems) binding(name string) {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		p.add("targetSecret", "%q cannot name a credentials binding: %s", name, wrong[0])
	}
}

func given(text *string) bool {
	return text != nil && *text != ""
}
