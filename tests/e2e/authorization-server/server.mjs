// An authorization server (OAuth 2.1, OpenID Connect) on a free port of this machine, for tests.
//
// node server.mjs '{"clients": [...], "scopes": ["mcp"], "cert": FILE, "key": FILE, "port": 0}'
//
// Prints its issuer as one line of JSON, and ends with its standard input. Every login and consent is given at once, to the
// account that `login_hint` names (or "ann"). A client may have `token_claims`, which its access tokens have too, and `accounts`
// are claims of an account's tokens by its name. Tokens of its own are exchanged (RFC 8693) for clients that may.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { createInterface } from 'node:readline';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { errors, Provider } from 'oidc-provider';

// Standard output has answers to the test alone: the library's notices come at any time.
for (const level of ['debug', 'info', 'log']) console[level] = console.error;
const answer = (line) => process.stdout.write(`${line}\n`);

const options = JSON.parse(process.argv[2] ?? '{}');
const scopes = options.scopes ?? ['mcp'];
const seconds = 600;
const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange';
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token';
const jwks = { keys: [rsaKey()] };

function rsaKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: randomBytes(8).toString('hex') };
}

/** Describes a resource: its tokens are signed, and for it alone. */
function described(resource) {
  return {
    scope: scopes.join(' '),
    audience: resource,
    accessTokenFormat: 'jwt',
    accessTokenTTL: seconds,
    jwt: { sign: { alg: 'RS256' } },
  };
}

/** Exchanges a token of an account for one that is for another resource (RFC 8693). */
async function exchange(context) {
  const { client, params, provider } = context.oidc;
  const publicKeys = jwks.keys.map(({ kty, n, e, kid, alg, use }) => ({ kty, n, e, kid, alg, use }));
  if (params.subject_token_type !== accessTokenType || !params.resource) {
    throw new errors.InvalidRequest('a subject token and a resource are needed');
  }
  const verified = jwtVerify(params.subject_token ?? '', createLocalJWKSet({ keys: publicKeys }), { issuer: provider.issuer });
  const { payload } = await verified.catch(() => {
    throw new errors.InvalidGrant('the subject token is not good');
  });
  const token = new provider.AccessToken({ accountId: payload.sub, client, gty: 'token_exchange', scope: params.scope });
  token.resourceServer = new provider.ResourceServer(params.resource, described(params.resource));
  context.oidc.entity('AccessToken', token);
  context.body = {
    access_token: await token.save(),
    issued_token_type: accessTokenType,
    token_type: 'Bearer',
    expires_in: token.expiration,
  };
}

const configuration = {
  clients: options.clients ?? [],
  jwks,
  cookies: { keys: [randomBytes(16).toString('hex')] },
  scopes: ['openid', 'offline_access', ...scopes],
  extraClientMetadata: { properties: ['token_claims'] },
  clientBasedCORS: () => true,
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (context, token) => ({ ...options.accounts?.[token.accountId], ...context.oidc.client?.token_claims }),
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
      getResourceServerInfo: (_context, resource) => described(resource),
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

const refreshed = {};

const server = options.cert
  ? https.createServer({ cert: readFileSync(options.cert), key: readFileSync(options.key) })
  : http.createServer();
server.listen(options.port ?? 0, '127.0.0.1', () => {
  const issuer = `${options.cert ? 'https' : 'http'}://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configuration);
  const parameters = ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'];
  provider.registerGrantType(exchangeGrant, exchange, parameters);
  provider.on('grant.success', (context) => {
    const spent = context.oidc?.entities?.RefreshToken;
    if (context.oidc?.params?.grant_type !== 'refresh_token' || !spent) return;
    refreshed[spent.accountId] = (refreshed[spent.accountId] ?? 0) + 1;
  });
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
  answer(JSON.stringify({ issuer }));
});
// A line `clock SECONDS` moves its clock, so that it gives tokens of another time; a line `refreshed` is answered with the numbers
// of tokens that were refreshed, by account.
const now = Date.now;
createInterface({ input: process.stdin })
  .on('line', (line) => {
    if (line === 'refreshed') {
      answer(JSON.stringify(refreshed));
      return;
    }
    const seconds = Number(line.split(' ')[1]);
    Date.now = () => now() + seconds * 1000;
    answer(JSON.stringify({ clock: seconds }));
  })
  .on('close', () => process.exit(0));
