/* api.c - the table of APIs, and the headers in front of requests and responses.
 *
 * HEADERS  request 0: key, version, correlation id; 1: and the client id; 2: and a tag section.
 *          response 0: correlation id; 1: and a tag section. The client id is never compact. */
#include "protocol/api.h"

#include <errno.h>

#include "protocol/api_table.h"
#include "protocol/msg/headers.h"

const struct api_desc *api_find(int16_t key)
{
    /* few keys are missing, so the row is at its key or a little before */
    if (key < 0 || key > API_KEY_MAX)
        return NULL;
    for (int i = key < api_rows_n ? key : api_rows_n - 1; i >= 0 && api_rows[i].key >= key; i--)
        if (api_rows[i].key == key)
            return &api_rows[i];
    return NULL;
}

const struct api_desc *api_all(int *n)
{
    *n = api_rows_n;
    return api_rows;
}

int api_request_header_version(const struct api_desc *api, int version)
{
    if (api->key == API_CONTROLLED_SHUTDOWN && version == 0)
        return 0;
    return version >= api->request->flex_min ? 2 : 1;
}

int api_response_header_version(const struct api_desc *api, int version)
{
    /* A client learns from this response which versions it may use, so it must be able to read it
     * before it knows. */
    if (api->key == API_API_VERSIONS)
        return 0;
    return version >= api->response->flex_min ? 1 : 0;
}

int request_header_decode(struct reader *r, struct request_header *h)
{
    struct reader start = *r;
    *h = (struct request_header){.client_id = STR_NULL};
    h->api_key = reader_i16(r);
    h->api_version = reader_i16(r);
    h->correlation_id = reader_i32(r);
    if (r->bad)
        return -EPROTO;
    const struct api_desc *api = api_find(h->api_key);
    bool known = api && h->api_version >= api->request->min && h->api_version <= api->request->max;
    /* the client id looks the same in headers 1 and 2, so 1 does for what we do not know */
    int version = known ? api_request_header_version(api, h->api_version) : 1;

    struct request_header_data data;
    *r = start;
    int err = request_header_data_decode(&data, version, r, NULL);
    if (!err && version > 0)
        h->client_id = data.client_id;
    return known ? err : -ENOTSUP;
}

void request_header_encode(struct writer *w, const struct request_header *h)
{
    const struct api_desc *api = api_find(h->api_key);
    struct request_header_data data = {.request_api_key = h->api_key,
                                       .request_api_version = h->api_version,
                                       .correlation_id = h->correlation_id,
                                       .client_id = h->client_id};
    int version = api ? api_request_header_version(api, h->api_version) : 1;
    request_header_data_encode(&data, version, w);
}

void response_header_encode(struct writer *w, int header_version, int32_t correlation_id)
{
    struct response_header_data data = {.correlation_id = correlation_id};
    response_header_data_encode(&data, header_version, w);
}

int response_header_decode(struct reader *r, int header_version, int32_t *correlation_id)
{
    struct response_header_data data;
    int err = response_header_data_decode(&data, header_version, r, NULL);
    *correlation_id = data.correlation_id;
    return err;
}
