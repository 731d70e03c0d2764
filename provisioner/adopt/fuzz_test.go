package adopt

import "testing"

// FuzzProviderConfig checks that any value of provider_specific_config is either rejected or sets only the part of its provider.
func FuzzProviderConfig(f *testing.F) {
	f.Add("aws", `{"vpcCidr":"10.250.0.0/16","awsZones":[{"name":"a","workerCidr":"10.250.0.0/19"}]}`)
	f.Add("azure", `{"vnetCidr":"10.250.0.0/16","zones":["1"],"enableNatGateway":true}`)
	f.Add("gcp", `{"zones":[]}`)
	f.Add("openstack", `{"zones":["a"],"loadBalancerProvider":"f5"}`)
	f.Add("ibm", `{}`)
	f.Fuzz(func(t *testing.T, provider, config string) {
		parts, err := providerOf(provider, config)
		if err != nil {
			return
		}

		set := map[string]bool{
			"aws": parts.AWSConfig != nil, "azure": parts.AzureConfig != nil, "gcp": parts.GCPConfig != nil, "openstack": parts.OpenStackConfig != nil,
		}
		for name, has := range set {
			if has != (name == provider) {
				t.Errorf("provider %q with %s results in %+v", provider, config, parts)
			}
		}
	})
}
