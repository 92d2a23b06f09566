// An authorization server (OAuth 2.1, OpenID Connect) on a free port of this machine, for tests.
//
// node server.mjs '{"clients": [...], "scopes": ["mcp"], "cert": FILE, "key": FILE, "port": 0}'
//
// Prints its issuer as one line of JSON, and ends with its standard input. Every login and consent is given at once, to the
// account that `login_hint` names (or "ann"). A client may have `token_claims`, which its access tokens have too.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { createInterface } from 'node:readline';
import { Provider } from 'oidc-provider';

const options = JSON.parse(process.argv[2] ?? '{}');
const scopes = options.scopes ?? ['mcp'];
const seconds = 600;

function rsaKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: randomBytes(8).toString('hex') };
}

const configuration = {
  clients: options.clients ?? [],
  jwks: { keys: [rsaKey()] },
  cookies: { keys: [randomBytes(16).toString('hex')] },
  scopes: ['openid', 'offline_access', ...scopes],
  extraClientMetadata: { properties: ['token_claims'] },
  clientBasedCORS: () => true,
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (context) => context.oidc.client?.token_claims,
  issueRefreshToken: () => true,
  interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  ttl: { AccessToken: seconds, ClientCredentials: seconds, Grant: 3600, RefreshToken: 3600, Session: 3600, Interaction: 600 },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    introspection: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_context, _client, oneOf) => oneOf ?? options.resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, resource) => ({
        scope: scopes.join(' '),
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: seconds,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
};

/** Logs the account in and consents to all that is asked for. */
async function interact(provider, request, response) {
  const details = await provider.interactionDetails(request, response);
  const { prompt, params, session } = details;
  if (prompt.name === 'login') {
    await provider.interactionFinished(request, response, { login: { accountId: params.login_hint ?? 'ann' } });
    return;
  }
  const known = details.grantId ? await provider.Grant.find(details.grantId) : undefined;
  const grant = known ?? new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingOIDCClaims, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  if (missingOIDCClaims) grant.addOIDCClaims(missingOIDCClaims);
  for (const [resource, asked] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, asked.join(' '));
  }
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

const server = options.cert
  ? https.createServer({ cert: readFileSync(options.cert), key: readFileSync(options.key) })
  : http.createServer();
server.listen(options.port ?? 0, '127.0.0.1', () => {
  const issuer = `${options.cert ? 'https' : 'http'}://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configuration);
  const handle = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url.startsWith('/interaction/')) {
      handle(request, response);
      return;
    }
    interact(provider, request, response).catch((error) => {
      response.statusCode = 500;
      response.end(String(error));
    });
  });
  console.log(JSON.stringify({ issuer }));
});
// A line `clock SECONDS` moves its clock, so that it gives tokens of another time.
const now = Date.now;
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const seconds = Number(line.split(' ')[1]);
    Date.now = () => now() + seconds * 1000;
    console.log(JSON.stringify({ clock: seconds }));
  })
  .on('close', () => process.exit(0));
